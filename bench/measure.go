package main

import (
	"strings"
	"sync"

	"github.com/pasteport/pasteport/bench/load"
)

// bench is one run of the command.
type bench struct {
	options
	serverCPU int
	programs  string // the folder of the server programs
	clientID  string
	roots     []byte
}

// sample is the result of one server in one round, by metric.
type sample map[metric]float64

type metric string

// Metrics, with their units.
const (
	rate     metric = "per s"
	cpuTime  metric = "CPU µs/op"
	median   metric = "p50 ms"
	tail     metric = "p99 ms"
	farTail  metric = "p99.9 ms"
	busy     metric = "of all polls" // found a response; near 1 the load generator is the bottleneck
	duration metric = "ms"

	idleMemory metric = "idle MiB"
	usedMemory metric = "used MiB"
	filePages  metric = "used MiB of files" // mostly the program file, which the kernel can reclaim
	perToken   metric = "bytes on disk per access token"
	perSession metric = "bytes per session"

	databaseSize metric = "GB of a million grants"
)

// gather connects the clients of a line.
func (b *bench) gather(p *process, server string, count int) (people []*person, err error) {
	for i := range count {
		connection, err := load.Dial(p.site.Host, i)
		if err != nil {
			return people, err
		}
		client := &load.Client{
			Conn:  connection,
			Site:  p.site,
			ID:    b.clientID,
			Scope: "mcp offline_access",
		}
		switch {
		case strings.HasPrefix(server, "pasteport"):
			client.Resource = p.site.JoinPath("/mcp").String()
		case strings.HasPrefix(server, oidcProvider):
			client.Scope = "openid offline_access"
		case guardless[server]:
			client.ID, client.Tokens.Access = "", load.StandingToken
		}
		people = append(people, &person{Client: client, server: server})
	}
	return people, nil
}

// guardless servers issue no tokens.
var guardless = map[string]bool{
	bareEcho:   true,
	leastGuard: true,
	siteEcho:   true,
	siteGuard:  true,
	sdkTools:   true,
	sdkGuard:   true,
	sdkAuth:    true,
	plainProxy: true,
}

func dismiss(people []*person) {
	for _, p := range people {
		p.Close()
	}
}

// together runs do for all clients at once.
func together(people []*person, do func(*person) error) error {
	if do == nil {
		return nil
	}
	failures, all := make([]error, len(people)), sync.WaitGroup{}
	for i, p := range people {
		all.Go(func() { failures[i] = do(p) })
	}
	all.Wait()
	for _, err := range failures {
		if err != nil {
			return err
		}
	}
	return nil
}
