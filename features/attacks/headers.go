package main

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
)

// headerRows are the attacks on a site that accepts its own tokens in the header, and the machines
// that send theirs.
func headerRows() []row {
	const people = "machines with tokens in the header, "
	accept := []string{"--accept-host-tokens"}
	return []row{
		{
			name:     "header-office",
			attacker: "wrong tokens in the header from one address, at full speed",
			people:   people + "behind the same address, which have called before",
			settings: accept,
			before:   calling(newMachine(office)),
			during:   calling(knownMachine),
			attack:   guessInHeader(func() string { return office }),
		},
		{
			name:     "header-office-pages",
			attacker: "wrong tokens in the header from one address, at full speed",
			people:   "behind the same address, on the pages",
			settings: accept,
			before:   working(fromOffice),
			during:   working(fromOffice),
			attack:   guessInHeader(func() string { return office }),
		},
		{
			name:     "header-prefix48",
			attacker: "wrong tokens in the header from an IPv6 /48, each from a different /64, at full speed",
			people:   people + "elsewhere, which have called before",
			settings: accept,
			before:   calling(newMachine("")),
			during:   calling(knownMachine),
			attack:   guessInHeader(freshSubnets()),
		},
		{
			name:     "header-repeated",
			attacker: "one wrong token in the header from one address, at full speed",
			people:   people + "behind the same address, each with a different new token",
			settings: accept,
			before:   calling(newMachine(office)),
			during:   calling(newMachine(office)),
			attack:   repeatInHeader,
		},
	}
}

// calling machines send one call each, without a login.
func calling(machine func(s *scene, n int) (*Person, error)) crowd {
	c := ordinary(machine)
	c.visit = (*Person).Call
	return c
}

// newMachine returns machines with tokens of their own, at an address or, without one, elsewhere.
func newMachine(address string) func(s *scene, n int) (*Person, error) {
	return func(s *scene, _ int) (*Person, error) {
		from := s.cleanAddress()
		if address != "" {
			from = address
		}
		p := s.person(from)
		p.access = p.token
		s.keep(p)
		return p, nil
	}
}

// knownMachine returns a machine that has called before the attack.
func knownMachine(s *scene, n int) (*Person, error) {
	if len(s.kept) == 0 {
		return nil, errors.New("no machine came before the attack")
	}
	p := *s.kept[n%len(s.kept)]
	return &p, nil
}

func guessInHeader(address func() string) func(context.Context, *scene) {
	return func(ctx context.Context, s *scene) {
		flood(ctx, floodWidth, func(ctx context.Context) { s.sendInHeader(ctx, address(), wrongPrefix+rand.Text()) })
	}
}

func repeatInHeader(ctx context.Context, s *scene) {
	token := wrongPrefix + rand.Text()
	flood(ctx, floodWidth, func(ctx context.Context) { s.sendInHeader(ctx, office, token) })
}

func (s *scene) sendInHeader(ctx context.Context, address, token string) {
	_, _ = s.attack(address).message(ctx, token, listTools,
		http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"}})
}
