package main

import "slices"

// Servers that lines name.
const (
	ours         = "pasteport" // with the middleware of a site, on SQLite
	oursBare     = "pasteport-bare"
	oursOneByOne = "pasteport one by one" // one transaction per grant
	onPostgres   = "pasteport+postgres"
	onMariaDB    = "pasteport+mariadb"
	ourTools     = "pasteport-tools"
	oursOpen     = "pasteport-unguarded"
	ourGateway   = "pasteport-gateway" // with the process of the SDK's server behind it
	sdkTools     = "sdk"
	sdkGuard     = "sdk-guard"
	sdkAuth      = "sdk-auth"
	plainProxy   = "reverse-proxy" // the standard library's, in place of the gateway
	bareEcho     = "echo"
	leastGuard   = "echo-guard"
	siteGuard    = "echo-site-guard"
	leastFlow    = "echo-flow"
	siteEcho     = "echo-site"
	leastFlowPG  = "echo-flow+postgres"
	fosite       = "fosite"
	fositeSQL    = "fosite-sql"
	fositePG     = "fosite-sql+postgres"
	goOAuth2     = "go-oauth2"
	oidcProvider = "oidc-provider"
	oidcUserinfo = "oidc-provider userinfo"
	ourStore     = "store"
	storeAlone   = "store without the group"
	rawDatabase  = "raw database"
	rawAtOnce    = "raw database at once"
)

// lines are all measurements, with the project's floors and goals.
var lines = slices.Concat(guarded, issuing, onServers, pages, tools, gateway, open, standing, durable)

var guarded = []line{
	{
		name:     "guarded call",
		scenario: "guard",
		short:    true,
		servers: []string{ours, bareEcho, oursBare, leastGuard, siteEcho, siteGuard, fosite, goOAuth2, fositeSQL,
			onPostgres, onMariaDB, oidcProvider, oidcUserinfo},
		compare: slices.Concat(
			against(rate, ours, bar{bareEcho, .85, .92}, bar{peer: siteEcho}, bar{fosite, 1.3, 1.5},
				bar{goOAuth2, 1.6, 1.9},
				bar{peer: fositeSQL}, bar{oidcProvider, 4.5, 5}, bar{oidcUserinfo, 20, 25}),
			against(rate, oursBare, bar{bareEcho, .85, .92}, bar{fosite, 1.3, 1.5}, bar{goOAuth2, 1.6, 1.9}),
			reach(rate, siteEcho, bareEcho), reach(rate, leastGuard, bareEcho), reach(rate, siteGuard, bareEcho),
			reach(rate, siteGuard, fosite), reach(rate, siteGuard, goOAuth2), reach(rate, siteGuard, oidcProvider),
			reach(rate, siteGuard, oidcUserinfo), reach(tail, siteGuard, bareEcho),
			against(rate, onPostgres, bar{peer: bareEcho}), against(rate, onMariaDB, bar{peer: bareEcho}),
			against(tail, ours, bar{bareEcho, 1.15, 1.05}),
			above(cpuTime, ours, bar{bareEcho, 5, 3}), above(cpuTime, oursBare, bar{bareEcho, 5, 3}),
			over(cpuTime, leastGuard, bareEcho), over(cpuTime, siteGuard, bareEcho)),
	},
	{
		name:     "guarded calls among writes",
		scenario: "mixed",
		servers:  []string{ours, leastFlow, fosite, fositeSQL},
		compare: slices.Concat(against(rate, ours, bar{fosite, .85, 1}, bar{peer: fositeSQL}, bar{peer: leastFlow}),
			reach(rate, leastFlow, fosite)),
	},
}

var issuing = []line{
	{
		name:     "code flow",
		scenario: "flow",
		servers: []string{ours, leastFlow, oursOneByOne, fosite, goOAuth2, fositeSQL, onPostgres, onMariaDB,
			oidcProvider},
		compare: slices.Concat(
			against(rate, ours, bar{fosite, .75, 1}, bar{peer: goOAuth2}, bar{fositeSQL, 6, 8},
				bar{oidcProvider, 14, 18}, bar{oursOneByOne, 2.5, 4}, bar{peer: leastFlow}),
			reach(rate, leastFlow, fosite), reach(rate, leastFlow, fositeSQL), reach(rate, leastFlow, oidcProvider),
			against(rate, onPostgres, bar{peer: ours}), against(rate, onMariaDB, bar{peer: ours})),
	},
	{
		name:     "refresh",
		scenario: "refresh",
		servers:  []string{ours, leastFlow, fosite, goOAuth2, fositeSQL, onPostgres, onMariaDB, oidcProvider},
		compare: slices.Concat(
			against(rate, ours, bar{fosite, .5, .75}, bar{peer: goOAuth2}, bar{fositeSQL, 3.8, 5},
				bar{oidcProvider, 3.8, 5}, bar{peer: leastFlow}),
			reach(rate, leastFlow, fosite), reach(rate, leastFlow, fositeSQL), reach(rate, leastFlow, oidcProvider),
			against(rate, onPostgres, bar{peer: ours}), against(rate, onMariaDB, bar{peer: ours})),
	},
	{
		name:     "revoke",
		scenario: "revoke",
		usesUp:   true,
		servers:  []string{ours, fosite, goOAuth2, fositeSQL, oidcProvider},
		compare: against(rate, ours, bar{peer: fosite}, bar{peer: goOAuth2}, bar{peer: fositeSQL},
			bar{peer: oidcProvider}),
	},
}

// onServers compares servers on PostgreSQL. The first ratio of a line is that to the least server
// that writes the same rows.
var onServers = []line{
	{
		name:     "code flow on PostgreSQL",
		scenario: "flow",
		servers:  []string{onPostgres, leastFlowPG, fositePG},
		compare: slices.Concat(
			against(rate, onPostgres, bar{peer: leastFlowPG}, bar{fositePG, 2, 0}),
			reach(rate, leastFlowPG, fositePG)),
	},
	{
		name:     "refresh on PostgreSQL",
		scenario: "refresh",
		servers:  []string{onPostgres, leastFlowPG, fositePG},
		compare: slices.Concat(
			against(rate, onPostgres, bar{peer: leastFlowPG}, bar{peer: fositePG}),
			reach(rate, leastFlowPG, fositePG)),
	},
}

var pages = []line{
	{
		name:     "metadata",
		scenario: "metadata",
		short:    true,
		servers:  []string{ours, bareEcho},
		compare:  against(rate, ours, bar{peer: bareEcho}),
	},
	{
		name:     "consent page",
		scenario: "page",
		short:    true,
		servers:  []string{ours, bareEcho},
		compare:  against(rate, ours, bar{peer: bareEcho}),
	},
}

var tools = []line{
	{
		name:     "tools/call",
		scenario: "call",
		servers:  []string{ourTools, oursOpen, sdkTools, sdkGuard, sdkAuth},
		compare: slices.Concat(against(rate, ourTools, bar{sdkTools, .97, 0}, bar{peer: oursOpen}, bar{peer: sdkAuth}),
			reach(rate, oursOpen, sdkTools), reach(rate, sdkAuth, sdkTools), reach(rate, sdkGuard, sdkTools)),
	},
	{
		name:     "tools/call in a session",
		scenario: "session",
		servers:  []string{ourTools, oursOpen, sdkTools, sdkGuard, sdkAuth},
		compare: slices.Concat(against(rate, ourTools, bar{sdkTools, .97, 0}, bar{peer: oursOpen}, bar{peer: sdkAuth}),
			reach(rate, oursOpen, sdkTools), reach(rate, sdkAuth, sdkTools), reach(rate, sdkGuard, sdkTools)),
	},
}

var gateway = []line{
	{
		name:     "call through the gateway",
		scenario: "call",
		servers:  []string{ourGateway, plainProxy, sdkTools},
		compare:  throughGateway,
	},
	{
		name:     "call through the gateway in a session",
		scenario: "session",
		servers:  []string{ourGateway, plainProxy, sdkTools},
		compare:  throughGateway,
	},
	{
		name:     "call through the gateway at 300 per s",
		scenario: "call",
		rate:     300,
		servers:  []string{ourGateway, plainProxy, sdkTools},
		compare:  throughGateway,
	},
}

// throughGateway compares the CPU time of both processes with that of the server alone.
var throughGateway = slices.Concat(
	against(cpuTime, ourGateway, bar{sdkTools, 1.3, 0}), reach(cpuTime, plainProxy, sdkTools),
	against(median, ourGateway, bar{peer: sdkTools}), against(tail, ourGateway, bar{peer: sdkTools}))

var open = []line{
	{
		name:     "guarded call at 2000 per s",
		scenario: "guard",
		rate:     2000,
		servers:  []string{ours, bareEcho, fosite},
		compare: slices.Concat(against(median, ours, bar{peer: bareEcho}),
			against(tail, ours, bar{peer: bareEcho}, bar{peer: fosite})),
	},
	{
		name:     "code flow at 80 per s",
		scenario: "flow",
		rate:     80,
		servers:  []string{ours, fosite, fositeSQL},
		compare: slices.Concat(against(median, ours, bar{peer: fositeSQL}),
			against(tail, ours, bar{peer: fositeSQL}, bar{peer: fosite})),
	},
}

var standing = []line{
	{
		name:    "cold start",
		measure: oneByOne(coldStart),
		servers: []string{ours, leastFlow, bareEcho, fosite, oidcProvider},
		compare: slices.Concat(alone(duration, ours, 25, 17),
			against(duration, ours, bar{oidcProvider, .05, 0}, bar{peer: fosite}),
			reach(duration, leastFlow, oidcProvider)),
	},
	{
		name:    "a million grants",
		measure: oneByOne(manyGrants),
		once:    true,
		servers: []string{ours, onPostgres},
		compare: slices.Concat(alone(databaseSize, ours, 1, 0), alone(databaseSize, onPostgres, 1.5, 0)),
	},
	{
		name:    "memory and disk",
		measure: oneByOne(footprint),
		once:    true,
		servers: []string{ours, leastFlow, fosite, fositeSQL, oidcProvider},
		compare: slices.Concat(
			alone(idleMemory, ours, 20, 16), reachAlone(idleMemory, leastFlow), alone(usedMemory, ours, 32, 26),
			reachAlone(usedMemory, leastFlow), alone(filePages, ours, 0, 0), reachAlone(filePages, leastFlow),
			against(usedMemory, ours, bar{fosite, .18, 0}, bar{oidcProvider, .1, 0}, bar{peer: fositeSQL}),
			reach(usedMemory, leastFlow, oidcProvider),
			alone(perToken, ours, 0, 0), against(perToken, ours, bar{peer: fositeSQL})),
	},
	{
		name:    "idle SSE sessions",
		measure: oneByOne(idleStreams),
		once:    true,
		servers: []string{ourTools, sdkTools},
		compare: slices.Concat(alone(perSession, ourTools, 0, 0), above(perSession, ourTools, bar{sdkTools, 2048, 0})),
	},
	{
		name:    "idle streamable sessions",
		measure: oneByOne(idleSessions),
		once:    true,
		servers: []string{ourTools, sdkTools},
		compare: slices.Concat(alone(perSession, ourTools, 0, 0), above(perSession, ourTools, bar{sdkTools, 2048, 0})),
	},
}

var durable = []line{
	{
		name:    "durable writes of 64",
		measure: oneByOne(durableWrites(clients)),
		short:   true,
		servers: []string{ourStore, rawDatabase, rawAtOnce},
		compare: slices.Concat(byDisk(against(rate, ourStore, bar{peer: rawDatabase})),
			reach(rate, rawAtOnce, rawDatabase), against(rate, ourStore, bar{peer: rawAtOnce})),
	},
	{
		name:    "durable writes of one",
		measure: oneByOne(durableWrites(1)),
		short:   true,
		servers: []string{ourStore, rawDatabase},
		compare: against(rate, ourStore, bar{peer: rawDatabase}),
	},
	{
		name:    "group commit of 64",
		measure: groupCommit(clients),
		servers: []string{ourStore, storeAlone},
		compare: against(rate, ourStore, bar{storeAlone, 10, 12}),
	},
	{
		name:    "group commit of one",
		measure: groupCommit(1),
		servers: []string{ourStore, storeAlone},
		compare: against(rate, ourStore, bar{storeAlone, .95, 0}),
	},
}
