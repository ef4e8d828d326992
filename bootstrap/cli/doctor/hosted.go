package doctor

import (
	"context"
	"slices"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// identify chooses a client document when none was given: the one that the server publishes for
// doctor or, if it publishes none, one that Serve serves.
func (e *examination) identify(ctx context.Context) checkResult {
	hosted := e.issuer + service.DoctorDocument
	missing := e.missesHosted(ctx, hosted)
	switch {
	case missing == "":
		e.Client = &Client{ID: hosted}
		return ok("published by the server for doctor: %s", hosted)
	case e.Serve == nil:
		return fail("Let the server publish the document: with Pasteport, set doctor-client: true. Or host the "+
			"output of --print-client-document, and pass "+
			"its https URL with --client-id.", "the server publishes no client document for doctor: %s", missing)
	}
	served, err := e.Serve()
	if err != nil {
		return fail("With Pasteport, set doctor-client: true, so that doctor serves no document.", "%s", err)
	}
	e.Client = served
	return ok("served from this computer, because the server publishes none for doctor: %s", served.ID)
}

// missesHosted returns why the server does not publish the document for doctor; "" if it does.
func (e *examination) missesHosted(ctx context.Context, at string) string {
	d, v := e.wire.document(ctx, at)
	switch {
	case v.status != OK:
		return v.seen
	case d.text("client_id") != at || !slices.Equal(d.list("redirect_uris"), service.DoctorClient.RedirectURIs):
		return at + " is not the document of doctor"
	}
	return ""
}
