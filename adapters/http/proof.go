package http

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/domain/oauth"
)

// pasted reads the token, or its proof of work, from a form.
func (e *Endpoints) pasted(c echo.Context, form oauth.Parameters) application.Pasted {
	return application.Pasted{Token: form.Get("bearer_token"), Proof: form.Get("proof"), Nonce: form.Get("nonce"), By: e.guesser(c)}
}

func proofDemand(err error) (demand *oauth.ProofDemand, demanded bool) {
	demanded = errors.As(err, &demand)
	return demand, demanded
}

// showProof answers with the page that computes the proof of work in the browser and submits the form again (B18).
func (e *Endpoints) showProof(c echo.Context, demand *oauth.ProofDemand, action string, form url.Values) error {
	e.outcomeOf(c, demand).setRetryAfter(c)
	e.secureTransport(c)
	form.Set("proof", demand.Sealed)
	return e.edition(c).WriteProof(c.Response(), http.StatusTooManyRequests, pages.Proof{
		Action: action, Form: form, Challenge: demand.Challenge, Bits: demand.Bits, Iterations: oauth.ProofIterations, Wait: demand.Wait,
	})
}
