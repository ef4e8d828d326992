package main

import "context"

// row is an attack. During each, people log in elsewhere, and in the attacker's own network with
// tokens that have worked before and with new ones.
type row struct {
	name     string
	attack   string // for the table
	settings []string
	network  string // that honest people share with the attacker, without the last byte
	sessions bool   // honest people open sessions
	prepare  func(context.Context, *scene) error
	launch   func(context.Context, *scene) // attacks until the context ends
}

// office is the network of most attackers.
const office = "203.0.113."

// rows are the attacks, in the order of the table.
func rows() []row {
	return []row{
		{
			name:    "one",
			attack:  "wrong tokens from one address",
			network: office,
			launch:  guessFrom(func(uint64) string { return office + "1" }),
		},
		{
			name:    "network",
			attack:  "wrong tokens from a /24",
			network: office,
			launch:  guessFrom(ofNetwork),
		},
		{
			name:    "thousand",
			attack:  "wrong tokens from 1,000 addresses",
			network: "45.0.1.",
			launch:  guessFrom(ofThousand),
		},
		{
			name:    "hanging",
			attack:  "apps whose hosts hang",
			network: office,
			launch:  fetch("/slow/"),
		},
		{
			name:    "clients",
			attack:  "made-up client ids",
			network: office,
			launch:  fetch("/made-up/"),
		},
		{
			name:    "tokens",
			attack:  "made-up codes and refresh tokens",
			network: office,
			launch:  sendUnknownTokens,
		},
		{
			name:     "sessions",
			attack:   "one person opens sessions",
			network:  office,
			sessions: true,
			launch:   openSessions,
		},
		{
			name:     "registrations",
			attack:   "registrations",
			settings: []string{"--self-registration"},
			network:  office,
			launch:   register,
		},
		{
			name:    "bodies",
			attack:  "1,000 requests with slow bodies",
			network: office,
			launch:  sendSlowly,
		},
		{
			name:    "reconnect",
			attack:  "an office of 150 reconnects",
			network: office,
			prepare: connectOffice,
			launch:  reconnectOffice,
		},
	}
}
