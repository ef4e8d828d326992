package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/pasteport/pasteport/adapters/diagnosis"
)

const (
	connectionsPath = "/connections"
	jsonPath        = "/connections.json"
	doctorParameter = "doctor" // of the page, to list the connections of doctor too
	maxListed       = 200      // connections on the page; JSON has all
)

// listing has the upstreams and connections on the page.
type listing struct {
	at        time.Time
	upstreams []Upstream
	all       []diagnosis.Connection
	hidden    int // connections of doctor that are left out
}

// Upstream is an MCP server behind a gateway, as the page shows it.
type Upstream struct {
	Name, Resource string
	Problem        error // nil for one that works
	Description
}

// Connections returns the routes of the connection trace as pages and as JSON, newest connection
// first. The first page shows the upstreams too.
func Connections(find func(context.Context) ([]diagnosis.Connection, error), upstreams func() []Upstream,
	now func() time.Time) []Route {
	page := tracePage{find, upstreams, now}
	return []Route{
		{Path: "/", Serve: page.with(page.list)},
		{Path: connectionsPath + "/*", Serve: page.with(page.one)},
		{Path: jsonPath, Serve: page.with(page.json)},
	}
}

type tracePage struct {
	find      func(context.Context) ([]diagnosis.Connection, error)
	upstreams func() []Upstream
	now       func() time.Time
}

// with calls show with all connections, or answers 503.
func (p tracePage) with(show func(http.ResponseWriter, *http.Request, []diagnosis.Connection)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		all, err := p.find(r.Context())
		if err != nil {
			storeFails(w)
			return
		}
		show(w, r, all)
	}
}

func (p tracePage) list(w http.ResponseWriter, r *http.Request, all []diagnosis.Connection) {
	listed := listing{at: p.now(), all: all, upstreams: p.upstreams()}
	if !r.URL.Query().Has(doctorParameter) {
		listed.all, listed.hidden = diagnosis.WithoutDoctor(all)
	}
	write(w, r, http.StatusOK, list(listed))
}

func (p tracePage) one(w http.ResponseWriter, r *http.Request, all []diagnosis.Connection) {
	found, only := diagnosis.Find(all, strings.TrimPrefix(r.URL.Path, connectionsPath+"/"))
	if !only {
		http.Error(w, "no connection, or more than one, has this id prefix: / lists all", http.StatusNotFound)
		return
	}
	write(w, r, http.StatusOK, one(found))
}

func (p tracePage) json(w http.ResponseWriter, _ *http.Request, all []diagnosis.Connection) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(all) // an error means that the client has disconnected
}
