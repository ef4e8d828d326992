package admin

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/domain/oauth"
)

const grantsPath = "/grants"

// GrantKeeper lists and ends grants, as the commands "pasteport grants" do.
type GrantKeeper interface {
	Grants(ctx context.Context) iter.Seq2[oauth.Connection, error]
	EndGrant(ctx context.Context, id string) (int, error)
	EndGrants(ctx context.Context, chosen func(oauth.Connection) bool) (int, error)
	EndLeaked(ctx context.Context, token string) (int, error)
}

// Grants returns the route of the page that finds and ends grants.
func Grants(keeper GrantKeeper) Route {
	page := grantsPage{keeper}
	return Route{Path: grantsPath, Serve: page.list, Form: page.end}
}

type grantsPage struct{ keeper GrantKeeper }

// search selects the grants whose names contain its texts; an empty text selects all.
type search struct{ app, person, server string }

func searchIn(query url.Values) search {
	read := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	return search{read("app"), read("person"), read("server")}
}

// query returns the search for a URL, with a further parameter unless its value is empty.
func (s search) query(name, value string) string {
	query := url.Values{
		"app":    {s.app},
		"person": {s.person},
		"server": {s.server},
		name:     {value},
	}
	maps.DeleteFunc(query, func(_ string, values []string) bool { return values[0] == "" })
	return grantsPath + "?" + query.Encode()
}

func (s search) chooses(grant oauth.Connection) bool {
	return contains(s.app, grant.Client.String(), grant.ClientName, grant.ClientHost) &&
		contains(s.person, grant.Subject, grant.Account) &&
		contains(s.server, grant.Resource.String(), grant.ResourceName)
}

// contains reports whether one of the names contains the text, whatever the case of its letters.
func contains(text string, names ...string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(strings.ToLower(name), text) })
}

// grantsFound are the grants on a page, oldest first.
type grantsFound struct {
	search
	problem string
	ended   string // how many grants the form has ended; "" without a form
	grants  []oauth.Connection
	more    bool // further grants match the search
}

func (p grantsPage) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	found := grantsFound{search: searchIn(query)}
	if ended, err := strconv.Atoi(query.Get("ended")); err == nil {
		found.ended = strconv.Itoa(ended)
	}
	p.show(w, r, http.StatusOK, found)
}

// show writes a page of the found grants after the ID in the query, and keeps only these in memory.
func (p grantsPage) show(w http.ResponseWriter, r *http.Request, status int, found grantsFound) {
	after := r.URL.Query().Get("after")
	for grant, err := range p.keeper.Grants(r.Context()) {
		if err != nil {
			storeFails(w)
			return
		}
		if grant.ID <= after || !found.chooses(grant) {
			continue
		}
		if found.more = len(found.grants) == 25; found.more { // the page is full
			break
		}
		found.grants = append(found.grants, grant)
	}
	write(w, r, status, grants(found))
}

// end ends what a form names, and returns to the list.
func (p grantsPage) end(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 32<<10)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "the form cannot be read", http.StatusBadRequest)
		return
	}
	ctx, form := context.WithoutCancel(r.Context()), r.PostForm // a closed window does not stop the end of grants
	ended, err := 0, oauth.Refuse(oauth.InvalidRequest, "O2", "the form does not say what to end")
	switch form.Get("end") {
	case "grant":
		ended, err = p.keeper.EndGrant(ctx, form.Get("grant"))
	case "client":
		client := form.Get("client")
		ended, err = p.keeper.EndGrants(ctx, func(g oauth.Connection) bool { return g.Client.String() == client })
	case "token":
		ended, err = p.keeper.EndLeaked(ctx, form.Get("token"))
	}
	found := grantsFound{search: searchIn(r.URL.Query())}
	refused, several := new(oauth.Error), new(application.SeveralFieldsError)
	switch {
	case errors.As(err, &refused):
		found.problem = refused.Description
	case errors.As(err, &several):
		found.problem = err.Error() + ": search for the person, and end each grant"
	case err != nil:
		storeFails(w)
		return
	default:
		http.Redirect(w, r, found.query("ended", strconv.Itoa(ended)), http.StatusSeeOther)
		return
	}
	p.show(w, r, http.StatusBadRequest, found)
}
