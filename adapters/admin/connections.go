package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/diagnosis"
)

const (
	connectionsPath = "/connections"
	doctorParameter = "doctor" // of the page, to list the connections of doctor too
	maxListed       = 200      // connections on the page; JSON has all
)

// listing is the content of the first page.
type listing struct {
	at         time.Time
	activities []Activity
	upstreams  []Upstream
	all        []diagnosis.Attempt
	hidden     int // connections of doctor that are left out
}

// Upstream is an MCP server behind a gateway, as the page shows it.
type Upstream struct {
	Name, Resource string
	Problem        error // nil for one that works
	Description
}

// Overview is what the first page shows, and the pages of connections, the newest connection first.
type Overview struct {
	Connections func(context.Context) ([]diagnosis.Attempt, error)
	Upstreams   func() []Upstream
	Activities  func() []Activity
	Now         func() time.Time
}

// Routes returns the routes of the pages, and of the connections as JSON.
func (p Overview) Routes() []Route {
	return []Route{
		{Path: "/", Serve: p.with(p.list)},
		{Path: connectionsPath + "/*", Serve: p.with(p.one)},
		{Path: connectionsPath + ".json", Serve: p.with(p.json)},
	}
}

// with calls show with all connections, or answers 503.
func (p Overview) with(show func(http.ResponseWriter, *http.Request, []diagnosis.Attempt)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		all, err := p.Connections(r.Context())
		if err != nil {
			storeFails(w)
			return
		}
		show(w, r, all)
	}
}

func (p Overview) list(w http.ResponseWriter, r *http.Request, all []diagnosis.Attempt) {
	listed := listing{
		at:         p.Now(),
		activities: p.Activities(),
		upstreams:  p.Upstreams(),
		all:        all,
	}
	if !r.URL.Query().Has(doctorParameter) {
		listed.all, listed.hidden = diagnosis.WithoutDoctor(all)
	}
	write(w, r, http.StatusOK, list(listed))
}

func (p Overview) one(w http.ResponseWriter, r *http.Request, all []diagnosis.Attempt) {
	found, only := diagnosis.Find(all, strings.TrimPrefix(r.URL.Path, connectionsPath+"/"))
	if !only {
		http.Error(w, "no connection, or more than one, has this id prefix: / lists all", http.StatusNotFound)
		return
	}
	write(w, r, http.StatusOK, one(found))
}

func (p Overview) json(w http.ResponseWriter, _ *http.Request, all []diagnosis.Attempt) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(all) // an error means that the client has disconnected
}
