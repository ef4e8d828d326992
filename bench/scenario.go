package main

import (
	"fmt"
	"net/http"

	"github.com/pasteport/pasteport/bench/load"
)

// ping has 40 bytes.
const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// scenario is the work of each client in a measurement; a line of the results table names it.
type scenario struct {
	prepare func(*person) error // runs once per client before the measurement; may be nil
	do      func(*person) error
}

// person is a simulated person: one client with its tokens and prepared requests.
type person struct {
	*load.Client
	server  string
	request []byte   // sent by every operation
	spare   []string // unused refresh tokens for revokeOne
	mixed   int      // requests of mix so far
}

const spares = 40 // refresh tokens per client that the revoke line uses up

var scenarios = map[string]scenario{
	"guard":    {prepare: preparePing, do: (*person).send},
	"flow":     {do: (*person).flow},
	"refresh":  {prepare: (*person).flow, do: (*person).refresh},
	"revoke":   {prepare: stockUp, do: revokeOne},
	"metadata": {prepare: getting("/.well-known/oauth-authorization-server"), do: (*person).send},
	"page":     {prepare: preparePage, do: (*person).send},
	"mixed":    {prepare: preparePing, do: mix},
	"call":     {prepare: prepareCall, do: (*person).send},
	"session":  {prepare: prepareSession, do: (*person).send},
}

func (p *person) flow() error    { return p.Client.Flow() }
func (p *person) refresh() error { return p.Client.Refresh() }

// send sends the prepared request.
func (p *person) send() error {
	answer, err := p.Do(p.request)
	if err == nil && answer.Status != http.StatusOK {
		err = fmt.Errorf("the response is %d: %.300s", answer.Status, answer.Body)
	}
	return err
}

// connect gets tokens if the server issues any.
func (p *person) connect() error {
	if p.ID == "" {
		return nil
	}
	return p.Flow()
}

func preparePing(p *person) error {
	err := p.connect()
	p.request = p.post(ping)
	if p.server == oidcUserinfo {
		p.request = load.Request(http.MethodGet, p.Site.JoinPath("/userinfo"), "", "",
			"Authorization: Bearer "+p.Tokens.Access)
	}
	return err
}

// post is a request to the MCP server with the client's token.
func (p *person) post(body string, headers ...string) []byte {
	headers = append(headers, "Authorization: Bearer "+p.Tokens.Access, "Accept: application/json, text/event-stream")
	return load.Request(http.MethodPost, p.Site.JoinPath("/mcp"), "application/json", body, headers...)
}

func getting(path string) func(*person) error {
	return func(p *person) error {
		p.request = load.Request(http.MethodGet, p.Site.JoinPath(path), "", "", "Accept: application/json")
		return nil
	}
}

func preparePage(p *person) error {
	p.request = p.Page("a-code-verifier-that-is-never-sent-to-this-server-00")
	return nil
}

func stockUp(p *person) error {
	for range spares {
		if err := p.flow(); err != nil {
			return err
		}
		p.spare = append(p.spare, p.Tokens.Refresh)
	}
	return nil
}

func revokeOne(p *person) error {
	if len(p.spare) == 0 {
		return load.ErrNothingLeft
	}
	next := p.spare[0]
	p.spare = p.spare[1:]
	return p.Revoke(next)
}

// mix sends the requests of a busy server: of a hundred, 95 are guarded calls, 4 are refreshes and
// 1 is a code flow.
func mix(p *person) (err error) {
	p.mixed++
	switch p.mixed % 100 {
	case 20, 40, 60, 80:
		err = p.refresh()
	case 99:
		err = p.flow()
	default:
		return p.send()
	}
	p.request = p.post(ping)
	return err
}
