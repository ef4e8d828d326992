package http

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/domain/uri"
)

// authorize shows the consent page.
func (e *Endpoints) authorize(c echo.Context) error {
	parameters, err := readQuery(c.Request())
	if err != nil {
		return err
	}
	consent, err := e.server.Authorize.RequestAuthorization(e.contextOf(c), parameters)
	if err != nil {
		return err
	}
	return e.showConsent(c, http.StatusOK, consent, question{fields: pageFields(e.server.Settings.HostFields)})
}

// decide handles the submitted consent form. It reads the request from the sealed ticket only,
// so that the person approves what the page showed.
func (e *Endpoints) decide(c echo.Context) error {
	form, err := e.readPageForm(c)
	if err != nil {
		return err
	}
	single := append(e.inputs(), "ticket", "decision", lifetimeInput, reviewedInput)
	if err := form.CheckNotRepeated(single...); err != nil {
		return err
	}
	decision := form.Get("decision")
	if decision == "return" {
		redirect, err := e.server.Authorize.OpenRedirect(form.Get("ticket"))
		if err != nil {
			return err
		}
		return redirectTo(c, redirect)
	}
	choice, err := choiceIn(form)
	if err != nil {
		return err
	}
	consent, err := e.server.Authorize.OpenConsent(form.Get("ticket"), choice)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	switch decision {
	case "approve":
		redirect, err := e.server.Authorize.Approve(ctx, consent, e.pasted(c, form))
		if err != nil {
			return e.askAgain(c, consent, form, err)
		}
		return redirectTo(c, redirect)
	case "deny":
		return e.server.Authorize.Deny(ctx, consent) // an *oauth.Refusal, which redirects to the client
	case approveElsewhere:
		callback, err := e.server.Authorize.ApproveElsewhere(ctx, consent, e.pasted(c, form))
		if err != nil {
			return e.askAgain(c, consent, form, err)
		}
		return e.edition(c).WriteCallback(c.Response(), pages.Callback{
			URL:       callback.URL,
			ExpiresAt: callback.ExpiresAt,
			Left:      callback.Left,
			Manage:    e.connectionsURL(),
		})
	}
	return oauth.Refuse(oauth.InvalidRequest, "B5", "the decision is missing")
}

// approveElsewhere is the decision to approve a client on another computer.
const approveElsewhere = "approve_elsewhere"

// askAgain answers a refused token with the consent page, or asks the person to approve again with
// the tools as they are now. It returns err if the person cannot try again.
func (e *Endpoints) askAgain(c echo.Context, consent *application.Consent, form oauth.Parameters, err error) error {
	if review := new(oauth.ToolReview); errors.As(err, &review) {
		attempt.From(c.Request().Context()).Refuse(err)
		repeated := url.Values{"ticket": {consent.Sealed}, reviewedInput: {review.Sealed}} // the latter has the token
		for _, input := range []string{choiceInput, allowInput, lifetimeInput} {
			repeated[input] = form.All(input)
		}
		settings, request := e.server.Settings, consent.Ticket.Request()
		return e.edition(c).WriteToolReview(c.Response(), pages.ToolReview{
			ClientName:   request.Client.Name,
			RedirectHost: request.RedirectURI.Host(),
			Server:       pages.Server{Name: settings.NameOf(request.Resource), URL: request.Resource.String()},
			New:          review.Changes.New,
			Changed:      review.Changes.Changed,
			Gone:         review.Changes.Gone,
			Action:       settings.Issuer + authorizePath,
			Form:         repeated,
			Decision:     form.Get("decision"),
			Manage:       e.connectionsURL(),
		})
	}
	asked, again := retryQuestion(e.server.Settings.HostFields, form, err)
	if !again {
		return err
	}
	attempt.From(c.Request().Context()).Refuse(err)
	return e.showConsent(c, e.answerError(c, err).status, consent, asked)
}

// readPageForm reads a form that one of our own pages has submitted.
func (e *Endpoints) readPageForm(c echo.Context) (oauth.Parameters, error) {
	if !e.sameOrigin(c.Request()) {
		return nil, refuseWith(http.StatusForbidden, "B3", "the form was sent from another site")
	}
	return readForm(c, http.StatusUnsupportedMediaType)
}

// sameOrigin reports whether a request comes from a page of this origin, or from no browser.
func (e *Endpoints) sameOrigin(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return true
	case "":
		origin := r.Header.Get(echo.HeaderOrigin)
		return origin == "" || origin == e.issuer.Scheme+"://"+e.issuer.Host
	}
	return false
}

// redirectTo sends the browser to the client with 303, so that it does not submit the form there.
func redirectTo(c echo.Context, redirect oauth.Redirect) error {
	header := c.Response().Header()
	header.Set(echo.HeaderCacheControl, "no-store")
	header.Set("Referrer-Policy", "same-origin")
	return c.Redirect(http.StatusSeeOther, redirect.Location)
}

func (e *Endpoints) showConsent(c echo.Context, status int, consent *application.Consent, asked question) error {
	settings, request := e.server.Settings, consent.Ticket.Request()
	catalogue := settings.ScopesOf(request.Resource)
	var checkedOn string
	if at := request.Client.CheckedAt; !at.IsZero() {
		checkedOn = at.UTC().Format(time.DateOnly)
	}
	return e.edition(c).WriteConsent(c.Response(), status, pages.Consent{
		ClientName:      request.Client.Name,
		ClientHost:      request.Client.ID.Host(),
		RedirectHost:    request.RedirectURI.Host(),
		Loopback:        request.RedirectURI.Loopback(),
		PrivateScheme:   request.RedirectURI.PrivateScheme(),
		ForeignRedirect: request.ForeignRedirect(),
		Unnamed:         !request.Client.DeclaresID,
		SelfRegistered:  request.Client.AuthMethod.SelfRegistered(),
		Hosted:          e.server.Clients.Hosted(request.Client.ID) != nil,
		CheckedOn:       checkedOn,
		Permissions:     permissions(catalogue, request.Scopes, request.Chosen(consent.Choice)),
		Offline:         request.Scopes.Has(oauth.OfflineAccess),
		StaysConnected:  request.Chosen(consent.Choice).Has(oauth.OfflineAccess),
		Lifetimes:       lifetimes(settings.GrantChoices, consent.Choice),
		IdleTTL:         settings.RefreshIdleTTL,
		GrantTTL:        settings.LongestGrant(),
		AccessTTL:       settings.AccessTokenTTL,
		Server:          pages.Server{Name: settings.NameOf(request.Resource), URL: request.Resource.String()},
		Action:          settings.Issuer + authorizePath,
		Manage:          e.connectionsURL(),
		Ticket:          consent.Sealed,
		Problem:         asked.problem,
		RetryIn:         asked.retryIn,
		Fields:          asked.fields,
		Upstream:        e.upstream(request.Resource),
	})
}

// edition returns the pages in the language of the request. It sets Strict-Transport-Security when
// the issuer uses https. On localhost that would bind the other servers of a developer's computer,
// too.
func (e *Endpoints) edition(c echo.Context) pages.Edition {
	if e.issuer.Scheme == "https" && !uri.IsLoopbackOrigin("https://"+e.issuer.Host) {
		c.Response().Header().Set(echo.HeaderStrictTransportSecurity, "max-age=31536000")
	}
	return e.pages.For(c.Request().Header.Get("Accept-Language"))
}

// failOnPage shows an error to a person. An *oauth.Refusal redirects to the client: at once after a
// POST or to a trusted host, else behind a button.
func (e *Endpoints) failOnPage(c echo.Context, err error) error {
	var refusal *oauth.Refusal
	if !errors.As(err, &refusal) {
		return e.showProblem(c, err, nil)
	}
	if refusal.Redirect.Automatic || c.Request().Method == http.MethodPost {
		return redirectTo(c, refusal.Redirect)
	}
	sealed, sealErr := e.server.Authorize.SealRedirect(refusal.Redirect)
	if sealErr != nil {
		return e.showProblem(c, sealErr, nil)
	}
	action := e.server.Settings.Issuer + authorizePath
	return e.showProblem(c, err, &pages.Return{Host: refusal.Redirect.Host, Action: action, Ticket: sealed})
}

func (e *Endpoints) showProblem(c echo.Context, err error, back *pages.Return) error {
	o := e.answerError(c, err)
	if o.status == http.StatusInternalServerError { // the person can try again
		o.status = http.StatusServiceUnavailable
		c.Response().Header().Set(echo.HeaderRetryAfter, "1")
	}
	why := explain(err, o)
	if c.Path() == e.issuer.Path+connectionsPath {
		why = explainConnections(o)
	}
	return e.edition(c).WriteProblem(c.Response(), o.status, pages.Problem{
		Title:      why.title,
		Text:       why.text,
		Advice:     why.advice,
		Detail:     why.detail,
		Code:       o.code,
		Incident:   o.incident,
		ClientHost: client.HostOf(err),
		Return:     back,
	})
}

// reviewedInput is the hidden input of the page about changed tools. Its value, which the server
// has sealed, shows which changes the person has seen.
const reviewedInput = "reviewed"

// The inputs with which a person narrows what a client requests.
const (
	choiceInput   = "choice" // a form without it comes from a page without checkboxes
	allowInput    = "allow"
	lifetimeInput = "lifetime"
)

// choiceIn returns what the person has chosen; nil from a page that offers no choice.
func choiceIn(form oauth.Parameters) (*oauth.Choice, error) {
	if form.Get(choiceInput) == "" {
		return nil, nil
	}
	choice := &oauth.Choice{Scopes: oauth.NewScopes(form.All(allowInput)...)}
	if chosen := form.Get(lifetimeInput); chosen != "" {
		lifetime, err := time.ParseDuration(chosen)
		if err != nil || lifetime == 0 {
			return nil, oauth.Refuse(oauth.InvalidRequest, "B25", "the form has a time that the page did not offer")
		}
		choice.Lifetime = lifetime
	}
	return choice, nil
}

// permissions returns scopes with their checkboxes. The first scope has none, so that the person
// cannot take it away.
func permissions(catalogue oauth.ScopeCatalogue, all, chosen oauth.Scopes) (described []pages.Permission) {
	scopes := catalogue.Describe(all)
	for i, scope := range scopes {
		permission := pages.Permission{Text: scope.Description, Allowed: chosen.Has(scope.Name)}
		if i > 0 {
			permission.Scope = scope.Name
		}
		implies := func(other oauth.Scope) bool {
			return other.Name != scope.Name && catalogue.Expand(oauth.NewScopes(other.Name)).Has(scope.Name)
		}
		if by := slices.IndexFunc(scopes, implies); by >= 0 && permission.Scope != "" {
			permission.ImpliedBy = scopes[by].Description
		}
		described = append(described, permission)
	}
	return described
}

// lifetimes returns the times that the page offers.
func lifetimes(choices []time.Duration, choice *oauth.Choice) (offered []pages.Lifetime) {
	if len(choices) < 2 {
		return nil
	}
	for _, lifetime := range choices {
		offered = append(offered, pages.Lifetime{
			Value:  lifetime.String(),
			Lasts:  lifetime,
			Chosen: choice != nil && choice.Lifetime == lifetime,
		})
	}
	return offered
}
