package main

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/bench/load"
	"github.com/pasteport/pasteport/bench/server"
)

// coldStart measures the time from the start of the process to its first response of any status.
func coldStart(b *bench, _ line, name string) (s sample, err error) {
	p, err := b.start(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	people, err := b.gather(p, name, 1)
	defer func() { dismiss(people) }()
	if err == nil {
		_, err = people[0].Do(
			load.Request(http.MethodGet, p.site.JoinPath("/.well-known/oauth-authorization-server"), "", ""))
	}
	return sample{duration: time.Since(p.began).Seconds() * 1e3}, err
}

const mebibyte = 1 << 20

// footprint measures memory and disk of a server that has just started, and after many code flows.
func footprint(b *bench, _ line, name string) (s sample, err error) {
	p, err := b.start(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	people, err := b.gather(p, name, clients)
	defer func() { dismiss(people) }()
	if err != nil {
		return nil, err
	}
	idle, err := p.memory(resident)
	before, diskErr := p.disk()
	if err = errors.Join(err, diskErr); err != nil {
		return nil, err
	}
	var left atomic.Int64
	left.Store(int64(b.flows))
	if err := together(people, func(one *person) (err error) {
		for err == nil && left.Add(-1) >= 0 {
			err = one.flow()
		}
		return err
	}); err != nil {
		return nil, err
	}
	used, err := p.memory(resident)
	files, filesErr := p.memory(ofFiles)
	after, diskErr := p.disk()
	s = sample{idleMemory: idle / mebibyte, usedMemory: used / mebibyte, filePages: files / mebibyte}
	if after > 0 {
		s[perToken] = (after - before) / float64(b.flows)
	}
	return s, errors.Join(err, filesErr, diskErr)
}

const perPerson = 100 // sessions; Pasteport's limit per person

// idleStreams measures the memory of an idle legacy SSE session.
func idleStreams(b *bench, _ line, name string) (sample, error) {
	return b.idle(name, func(p *person, client int) (closing func(), err error) {
		connection, err := load.Dial(p.Site.Host, client)
		if err != nil {
			return func() {}, err
		}
		answer, line, err := connection.Open(load.Request(http.MethodGet, p.Site.JoinPath("/mcp"), "", "",
			"Accept: text/event-stream", "Authorization: Bearer "+p.Tokens.Access))
		if err == nil && answer.Status != http.StatusOK {
			err = fmt.Errorf("opening a stream: %d %s", answer.Status, line)
		}
		return connection.Close, err
	})
}

// idleSessions measures the memory of an idle streamable session, which needs no connection.
func idleSessions(b *bench, _ line, name string) (sample, error) {
	return b.idle(name, func(p *person, _ int) (func(), error) {
		_, err := p.openSession()
		return func() {}, err
	})
}

// idle opens sessions and measures the memory per session.
func (b *bench) idle(name string, open func(p *person, client int) (closing func(), err error)) (s sample, err error) {
	p, err := b.start(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	people, err := b.gather(p, name, max(1, b.sessions/perPerson))
	defer func() { dismiss(people) }()
	if err == nil {
		err = together(people, (*person).connect)
	}
	if err != nil {
		return nil, err
	}
	before, err := p.settled()
	if err != nil {
		return nil, err
	}
	closings := make([]func(), 0, b.sessions)
	defer func() {
		for _, closing := range closings {
			closing()
		}
	}()
	for i := range b.sessions {
		closing, err := open(people[i%len(people)], i)
		closings = append(closings, closing)
		if err != nil {
			return nil, fmt.Errorf("opening session %d of %d: %w", i+1, b.sessions, err)
		}
	}
	after, err := p.settled()
	return sample{perSession: (after - before) / float64(b.sessions)}, err
}

// settled returns the memory of the server after it has returned free memory to the system.
func (p *process) settled() (float64, error) {
	if err := p.tell(server.Settle); err != nil {
		return 0, err
	}
	return p.memory(resident)
}
