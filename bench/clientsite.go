package main

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/pasteport/pasteport/bench/load"
)

// openClientSite serves the metadata document of the client; servers may cache it for an hour.
func (b *bench) openClientSite() (closeSite func()) {
	site := httptest.NewUnstartedServer(nil)
	site.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "max-age=3600")
		_, _ = fmt.Fprintf(w, `{"client_id":%q,"client_name":"Bench","redirect_uris":[%q],`+
			`"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"none"}`, b.clientID,
			load.Redirect)
	})
	site.StartTLS()
	b.clientID = site.URL + "/client.json"
	b.roots = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: site.Certificate().Raw})
	return site.Close
}
