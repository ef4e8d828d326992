package http

import (
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/domain/oauth"
)

// reviewedInput is the hidden input of the page about changed tools. Its value, which the server
// has sealed, shows which changes the person has seen.
const reviewedInput = "reviewed"

// showToolReview asks the person to approve again with the tools as they are now.
func (e *Endpoints) showToolReview(c echo.Context, consent *application.Consent, review *oauth.ToolReview,
	form url.Values) error {
	decision := form.Get("decision")
	form.Del("decision")
	form.Set(reviewedInput, review.Sealed)
	settings, request := e.server.Settings, consent.Ticket.Request()
	return e.edition(c).WriteToolReview(c.Response(), pages.ToolReview{
		ClientName:   request.Client.Name,
		RedirectHost: request.RedirectURI.Host(),
		Server:       pages.Server{Name: settings.NameOf(request.Resource), URL: request.Resource.String()},
		New:          review.Changes.New,
		Changed:      review.Changes.Changed,
		Gone:         review.Changes.Gone,
		Action:       settings.Issuer + authorizePath,
		Form:         form,
		Decision:     decision,
		Manage:       e.connectionsURL(),
	})
}
