package cimd

import (
	"context"
	"net/http"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Answer is what the host of a document answered. Status is 0 when it did not answer.
type Answer struct {
	Status      int
	ContentType string
	Mitigated   string // the header cf-mitigated, with which Cloudflare marks a bot challenge
	Body        []byte // the document; nil with an error
}

// Probe fetches the document at id once, with the transport and the checks of a Directory, but
// without its cache and budget. The error is the one for which a Directory refuses the client.
func Probe(ctx context.Context, o Config, id oauth.ClientID) (Answer, error) {
	d := New(o)
	seen := &observer{RoundTripper: d.transport}
	d.transport = seen
	fetched, err := d.documents.fetch(ctx, id, nil)
	if err == nil {
		seen.answer.Body = fetched.body
	}
	return seen.answer, err
}

// observer records the head of a response.
type observer struct {
	http.RoundTripper
	answer Answer
}

func (o *observer) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.RoundTripper.RoundTrip(r)
	if err == nil {
		o.answer = Answer{
			Status: response.StatusCode, ContentType: response.Header.Get("Content-Type"),
			Mitigated: response.Header.Get("Cf-Mitigated"),
		}
	}
	return response, err
}
