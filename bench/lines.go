package main

import "slices"

const oidcProvider = "oidc-provider"

// lines are what is measured, with the bars of the project's performance goals.
var lines = []line{
	{
		name: "guarded call", scenario: "guard", short: true,
		servers: []string{"pasteport", "echo", "pasteport-bare", "echo-site", "fosite", "go-oauth2", "fosite-sql", oidcProvider},
		compare: slices.Concat(
			against(rate, "pasteport", bar{"echo", .85, .92}, bar{"echo-site", 0, 0}, bar{"fosite", 1.3, 1.5}, bar{"go-oauth2", 1.6, 1.9},
				bar{"fosite-sql", 0, 0}, bar{oidcProvider, 4.5, 5}),
			against(rate, "pasteport-bare", bar{"echo", .85, .92}, bar{"fosite", 1.3, 1.5}),
			against(tail, "pasteport", bar{"echo", 1.15, 1.05}),
			[]comparison{
				{metric: cpuTime, ours: "pasteport", peer: "echo", floor: 5, goal: 3, above: true},
				{metric: cpuTime, ours: "pasteport-bare", peer: "echo", floor: 5, goal: 3, above: true},
			}),
	},
	{
		name: "code flow", scenario: "flow",
		servers: []string{"pasteport", "fosite", "go-oauth2", "fosite-sql", oidcProvider},
		compare: against(rate, "pasteport", bar{"fosite", .75, 1}, bar{"go-oauth2", 0, 0}, bar{"fosite-sql", 6, 8}, bar{oidcProvider, 14, 18}),
	},
}
