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
func Probe(ctx context.Context, o Config, id oauth.ClientID) (answer Answer, err error) {
	d := New(o)
	d.answered = func(r *http.Response) {
		answer = Answer{
			Status:      r.StatusCode,
			ContentType: r.Header.Get("Content-Type"),
			Mitigated:   r.Header.Get("Cf-Mitigated"),
		}
	}
	fetched, err := d.documents.fetch(ctx, id, nil)
	if err == nil {
		answer.Body = fetched.body
	}
	return answer, err
}
