package main

import (
	"context"
	"time"
)

// row is an attack, and the people who connect before and during it.
type row struct {
	name     string
	attacker string // the attack, for the table
	people   string // the honest people, for the table
	settings []string
	delay    time.Duration // of the verifier
	before   crowd         // people before the attack
	during   crowd         // people during the attack
	prepare  func(context.Context, *scene) error
	between  func(context.Context, *scene) error // called between before and during
	attack   func(context.Context, *scene)       // until the context ends
	warmUp   time.Duration                       // of the attack, before anything is measured
	note     func(context.Context, *scene) (string, error)
}

// crowd describes arriving people: size at once, after every interval.
type crowd struct {
	size   int
	every  time.Duration
	person func(s *scene, n int) (*Person, error)
	visit  func(*Person, context.Context) error
}

// ordinary people arrive one by one, three per second.
func ordinary(person func(s *scene, n int) (*Person, error)) crowd {
	return crowd{
		size:   1,
		every:  time.Second / 3,
		person: person,
		visit:  (*Person).Visit,
	}
}

// working people arrive one by one, one per second: pages demand work, and all of them compute on
// this one computer.
func working(person func(s *scene, n int) (*Person, error)) crowd {
	c := ordinary(person)
	c.every = time.Second
	return c
}

func fromElsewhere(s *scene, _ int) (*Person, error) { return s.person(s.cleanAddress()), nil }

func fromOffice(s *scene, _ int) (*Person, error) {
	_ = s.cleanAddress() // advances the count by which person decides who has no script
	return s.person(office), nil
}

// withNewApp returns a person with an app whose document is not fetched yet.
func withNewApp(s *scene, n int) (p *Person, err error) {
	p, _ = fromElsewhere(s, n)
	p.client, err = s.newClient("client")
	return p, err
}

// withSession returns a person with an app that opens a session.
func withSession(s *scene, n int) (*Person, error) {
	p, err := fromElsewhere(s, n)
	p.session = true
	return p, err
}

// floodWidth is how many connections an attack at full speed has.
const floodWidth = 8

// rows are the attacks, in the order of the table.
func rows() []row {
	elsewhere, inOffice := ordinary(fromElsewhere), ordinary(fromOffice)
	return append([]row{
		{
			name:     "office",
			attacker: "wrong tokens from one address, at full speed, on both pages",
			people:   "behind the same address",
			before:   working(fromOffice),
			during:   working(fromOffice),
			attack: guessFrom(func() string {
				return office
			}),
		},
		{
			name:     "office-looks",
			attacker: "a colleague reloads an empty connections page, at full speed",
			people:   "behind the same address",
			before:   inOffice,
			during:   inOffice,
			attack:   lookAtEmptyPage,
		},
		{
			name:     "prefix48",
			attacker: "wrong tokens from an IPv6 /48, each from a different /64, a hundred and then 1.7 a second",
			people:   "elsewhere",
			before:   working(fromElsewhere),
			during:   working(fromElsewhere),
			attack:   guessOn(100, 1.7, freshSubnets()),
		},
		{
			name:     "prefix48-fast",
			attacker: "wrong tokens from an IPv6 /48, each from a different /64, 50 a second",
			people:   "elsewhere",
			before:   working(fromElsewhere),
			during:   working(fromElsewhere),
			attack:   guessOn(0, 50, freshSubnets()),
		},
		{
			name:     "colleagues-10",
			attacker: "none; the site takes 1 s to check a token",
			people:   "ten approve at the same time behind one address",
			delay:    time.Second,
			before:   elsewhere,
			during:   atOnce(10),
		},
		{
			name:     "colleagues-30",
			attacker: "none; the site takes 1 s to check a token",
			people:   "thirty approve at the same time behind one address",
			delay:    time.Second,
			before:   elsewhere,
			during:   atOnce(30),
		},
		{
			name:     "slow-hosts",
			attacker: "4 addresses, 4 hosts with slow documents, 2.8 requests a second for each replica",
			people:   "elsewhere, each with a different new app",
			before:   ordinary(withNewApp),
			during:   ordinary(withNewApp),
			attack:   fetchSlowly,
		},
		{
			name:     "slow-and-many",
			attacker: "the same attack, after 1,100 valid documents from 40 hosts",
			people:   "refresh with apps that sign",
			before:   manyWithSigningApps(),
			during:   refreshing(),
			between:  fetchMany,
			attack:   fetchSlowly,
		},
		{
			name:     "made-up-paths",
			attacker: "made-up paths on the app's host, from one address and from an IPv6 /48, at full speed",
			people:   "elsewhere, with the app's documents, which have to be fetched again",
			before:   ordinary(withOwnDocument),
			during:   ordinary(withKnownDocument),
			prepare:  shareHost,
			between:  untilStale,
			attack:   fetchMadeUp,
		},
		{
			name:     "token-endpoint",
			attacker: "made-up codes and refresh tokens from one address, at full speed",
			people:   "behind the same address",
			before:   inOffice,
			during:   inOffice,
			attack:   sendUnknownTokens,
		},
		{
			name:     "end-all",
			attacker: "none; `grants end --all` with 150 clients behind one address",
			people:   "all of them connect again",
			before:   inOffice,
			during:   reconnecting(),
			prepare:  connectMany,
			attack:   endAll,
		},
		{
			name:     "sessions",
			attacker: "a person with one valid token approves 101 apps, then opens sessions at full speed",
			people:   "elsewhere, each opens a session",
			before:   ordinary(withSession),
			during:   ordinary(withSession),
			between:  connectAttacker,
			attack:   openSessions,
		},
		{
			name:     "grants",
			attacker: "a person with one valid token approves apps at full speed",
			people:   "elsewhere",
			before:   elsewhere,
			during:   elsewhere,
			attack:   approve,
			note:     attackersPage,
		},
	}, headerRows()...)
}

// atOnce are colleagues who press Approve at the same moment, every six seconds.
func atOnce(size int) crowd {
	return crowd{
		size:   size,
		every:  6 * time.Second,
		person: fromOffice,
		visit:  (*Person).Visit,
	}
}
