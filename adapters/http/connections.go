package http

import (
	"net/http"
	"net/url"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/domain/oauth"
)

// connections shows the form for the host token, or for the fields that identify its owner.
func (e *Endpoints) connections(c echo.Context) error {
	return e.askForToken(c, http.StatusOK, question{fields: pageFields(e.server.Settings.IdentityFields)})
}

// change shows the connections of a pasted token, ends some, or replaces the token. It sets no
// cookie: a sealed ticket in the page authorizes its buttons.
func (e *Endpoints) change(c echo.Context) error {
	form, err := e.readPageForm(c)
	if err != nil {
		return err
	}
	if err := form.CheckNoneRepeated(); err != nil {
		return err
	}
	switch form.Get("decision") {
	case "show":
		return e.findConnections(c, form)
	case "end":
		if form.Get("grant") == "" {
			return oauth.Refuse(oauth.InvalidRequest, "B5", "the grant is missing")
		}
		return e.endConnection(c, form, form.Get("grant"))
	case "end_all":
		return e.endConnection(c, form, "")
	case "replace":
		return e.replaceToken(c, form)
	case "page":
		found, err := e.server.Connections.Show(c.Request().Context(), form.Get("ticket"))
		if err != nil {
			return e.refuseTicket(c, err)
		}
		return e.showConnections(c, found, pageIn(form), pages.Connections{})
	}
	return oauth.Refuse(oauth.InvalidRequest, "B5", "the decision is missing")
}

func (e *Endpoints) findConnections(c echo.Context, form oauth.Parameters) error {
	fields := e.server.Settings.IdentityFields
	found, err := e.server.Connections.Find(c.Request().Context(), e.pasted(c, form))
	if asked, again := retryQuestion(fields, form, err); again {
		return e.askForToken(c, e.answerError(c, err).status, asked)
	}
	if err != nil {
		return err
	}
	if len(found.Active) == 0 {
		problem := "No app is connected with this token, or this site does not know it."
		if len(fields) > 0 {
			problem = "No app is connected with these values, or this site does not know them."
		}
		return e.askForToken(c, http.StatusOK, question{fields: entered(fields, form), problem: problem})
	}
	return e.showConnections(c, found, 1, pages.Connections{})
}

// replaceToken gives the connections of the ticket a new token. Replace returns them even when it
// refuses the token.
func (e *Endpoints) replaceToken(c echo.Context, form oauth.Parameters) error {
	found, err := e.server.Connections.Replace(c.Request().Context(), form.Get("ticket"), e.pasted(c, form))
	if asked, again := retryQuestion(e.server.Settings.HostFields, form, err); again {
		o := e.answerError(c, err)
		shown := e.connectionsPage(found, pageIn(form))
		shown.Replacement, shown.ReplacementProblem, shown.RetryIn = asked.fields, asked.problem, asked.retryIn
		return e.writeConnections(c, o.status, shown)
	}
	if err != nil {
		return e.refuseTicket(c, err)
	}
	done := "The apps now use the new token."
	if len(e.server.Settings.HostFields) > 0 {
		done = "The apps now use the new credentials."
	}
	return e.showConnections(c, found, 1, pages.Connections{Done: done})
}

func (e *Endpoints) endConnection(c echo.Context, form oauth.Parameters, grant string) error {
	ended, left, err := e.server.Connections.End(c.Request().Context(), form.Get("ticket"), grant)
	if err != nil {
		return e.refuseTicket(c, err)
	}
	told := pages.Connections{Ended: ended}
	if ended == 1 {
		told.Done = "The connection has ended. The app’s next request is refused."
	}
	return e.showConnections(c, left, pageIn(form), told)
}

// refuseTicket shows the form for the token again when the ticket has expired.
func (e *Endpoints) refuseTicket(c echo.Context, err error) error {
	if kind, _ := oauth.KindOf(err); kind == oauth.ExpiredTicket {
		asked := question{fields: pageFields(e.server.Settings.IdentityFields),
			problem: "This page is out of date. Paste your token again."}
		if len(asked.fields) > 0 {
			asked.problem = "This page is out of date. Fill in the form again."
		}
		return e.askForToken(c, http.StatusBadRequest, asked)
	}
	return err
}

// pageIn returns the number of the page in a form; showConnections corrects one that does not
// exist.
func pageIn(form oauth.Parameters) int {
	page, _ := strconv.Atoi(form.Get("page"))
	return page
}

func (e *Endpoints) askForToken(c echo.Context, status int, asked question) error {
	return e.writeConnections(c, status, pages.Connections{
		Action:  e.connectionsURL(),
		Problem: asked.problem,
		RetryIn: asked.retryIn,
		Fields:  asked.fields,
	})
}

// connectionsOnPage bounds the size of a page.
const connectionsOnPage = 25

// showConnections shows a page of the connections, with the Done and the Ended of told.
func (e *Endpoints) showConnections(c echo.Context, found application.FoundConnections, page int,
	told pages.Connections) error {
	shown := e.connectionsPage(found, page)
	shown.Done, shown.Ended = told.Done, told.Ended
	return e.writeConnections(c, http.StatusOK, shown)
}

func (e *Endpoints) writeConnections(c echo.Context, status int, shown pages.Connections) error {
	return e.edition(c).WriteConnections(c.Response(), status, shown)
}

func (e *Endpoints) connectionsPage(found application.FoundConnections, page int) pages.Connections {
	all, limits := len(found.Active), e.server.Settings.Limits
	shown := pages.Connections{
		Fields:      pageFields(e.server.Settings.IdentityFields),
		Replacement: pageFields(e.server.Settings.HostFields),
		Action:      e.connectionsURL(),
		Ticket:      found.Sealed,
		Now:         found.At,
		All:         all,
		Limit:       limits.MaxGrantsPerToken,
		NearLimit:   limits.NearMaxGrants(all),
		Pages:       max(1, (all+connectionsOnPage-1)/connectionsOnPage),
	}
	shown.Page = min(max(page, 1), shown.Pages)
	first := (shown.Page - 1) * connectionsOnPage
	for _, active := range found.Active[first:min(all, first+connectionsOnPage)] {
		publisher := active.ClientHost
		if publisher == oauth.SelfRegistered {
			publisher = ""
		}
		shown.Active = append(shown.Active, pages.Connection{
			Grant:         active.ID,
			Account:       active.Account,
			ClientName:    active.ClientName,
			ClientHost:    publisher,
			Server:        pages.Server{Name: active.ResourceName, URL: active.Resource.String()},
			Loopback:      active.Loopback,
			PrivateScheme: active.PrivateScheme,
			Permissions:   permissions(e.server.Settings.ScopesOf(active.Resource), active.Scopes, active.Scopes),
			Waiting:       active.Waiting,
			CreatedAt:     active.CreatedAt,
			LastUsedAt:    active.LastUsedAt,
			EndsBy:        active.EndsBy,
			EndsAtLatest:  active.EndsAtLatest,
		})
	}
	return shown
}

func (e *Endpoints) connectionsURL() string {
	return (&url.URL{Scheme: e.issuer.Scheme, Host: e.issuer.Host, Path: e.issuer.Path + connectionsPath}).String()
}

// Welcome answers a person who has opened the address of one of the servers in a browser.
func (e *Endpoints) Welcome(c echo.Context, status int, servers ...oauth.ProtectedResource) error {
	page := pages.Welcome{Manage: e.connectionsURL()}
	for _, server := range servers {
		page.Servers = append(page.Servers, pages.Server{Name: server.Name, URL: server.Resource.String()})
	}
	return e.edition(c).WriteWelcome(c.Response(), status, page)
}
