package doctor

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/bootstrap/pasteporttest/browser"
)

// KnownClient is a client that many people use. One without a Document registers itself.
type KnownClient struct {
	Name        string
	Document    string // URL of its Client ID Metadata Document, which is its client_id
	RunsAtMaker bool   // its maker's servers connect, and not the person's computer
	NeedsSecret bool   // it registers itself and insists on a client secret
}

// The answers to whether clients can log in.
const (
	Can        = "can"
	Cannot     = "cannot"
	NotChecked = "not checked"
)

// ClientGroup are the well-known clients with the same answer for the same reason. Those that can
// have no Reason, and only a Reason that the operator can change has a Remedy.
type ClientGroup struct {
	Answer string   `json:"answer"`
	Reason string   `json:"reason,omitempty"`
	Remedy string   `json:"remedy,omitempty"`
	Names  []string `json:"names"`
}

var (
	able       = ClientGroup{Answer: Can}
	needSecret = ClientGroup{Answer: Cannot, Reason: "because they need a client secret, and get none here"}
	outOfReach = ClientGroup{Answer: Cannot,
		Reason: "because they run on servers of their makers, which cannot reach this computer"}
	noDocuments = ClientGroup{Answer: Cannot, Reason: "because the server does not accept their metadata documents"}
	mayRegister = ClientGroup{Answer: NotChecked,
		Reason: "because the server does not accept their metadata documents, and some register themselves instead"}
	unfetched    = ClientGroup{Answer: NotChecked, Reason: "because this computer cannot fetch their documents"}
	unregistered = ClientGroup{
		Answer: Cannot, Reason: "because they register themselves and self-registration is off",
		Remedy: "set self-registration: true to let them",
	}
)

const (
	byMetadata = "by the metadata; --clients asks the server about each client with a document"
	byRequests = "by the metadata, and by an authorization request for each client with a document"
)

// Which clients register is the operator's decision, so that clients which cannot log in are no
// warning.
var clientChecks = []check{{
	id: "clients.login", question: "Which well-known clients can log in?",
	needs:  []string{"server.endpoints", "server.pkce", "server.public_clients", "server.responses"},
	why:    "Some clients identify themselves by a published document, and others register themselves.",
	breaks: everyClient, run: (*examination).knownClients,
}}

func (e *examination) knownClients(ctx context.Context) checkResult {
	if len(e.Clients) == 0 {
		return skip("because no clients are named")
	}
	result := ok(byMetadata)
	if e.AskClients {
		result = ok(byRequests)
	}
	for _, client := range e.Clients {
		result.clients = addTo(result.clients, e.canLogIn(ctx, client), client.Name)
	}
	slices.SortStableFunc(result.clients, func(a, b ClientGroup) int { return strings.Compare(a.Answer, b.Answer) })
	return result
}

func addTo(groups []ClientGroup, group ClientGroup, name string) []ClientGroup {
	for i := range groups {
		if groups[i].Answer == group.Answer && groups[i].Reason == group.Reason {
			groups[i].Names = append(groups[i].Names, name)
			return groups
		}
	}
	group.Names = []string{name}
	return append(groups, group)
}

func (e *examination) canLogIn(ctx context.Context, client KnownClient) ClientGroup {
	_, registers := e.server.members["registration_endpoint"]
	accepts := e.server.flag("client_id_metadata_document_supported")
	switch {
	case client.RunsAtMaker && IsLoopback(e.Endpoint):
		return outOfReach
	case client.NeedsSecret && !e.issuesSecrets():
		return needSecret
	case client.Document == "" && !registers:
		return unregistered
	case client.Document == "":
		return able
	case !accepts && registers:
		return mayRegister
	case !accepts:
		return noDocuments
	case e.AskClients:
		return e.askFor(ctx, client)
	}
	return able
}

func (e *examination) issuesSecrets() bool {
	return slices.ContainsFunc(e.server.list("token_endpoint_auth_methods_supported"), func(method string) bool {
		return strings.HasPrefix(method, "client_secret_")
	})
}

// askFor opens the authorization page as the browser of a person with this client does, with a
// redirect URI of the client's document.
func (e *examination) askFor(ctx context.Context, client KnownClient) ClientGroup {
	published, v := e.wire.document(ctx, client.Document)
	redirects := published.list("redirect_uris")
	if v.status != OK || len(redirects) == 0 {
		return unfetched
	}
	e.flow.state, e.flow.verifier = rand.Text(), rand.Text()+rand.Text()
	page, err := e.visit(ctx, func(ctx context.Context, person browser.Person) (*browser.Page, error) {
		return person.Open(ctx, e.authorizationURL(client.Document, webRedirect(redirects)))
	})
	reason := ""
	switch {
	case err != nil:
		reason = err.Error()
	case page.Status >= http.StatusBadRequest:
		reason = fmt.Sprintf("the page shows %d %q", page.Status, page.Title)
	case refusalOf(page) != "":
		reason = "the server responds with " + refusalOf(page)
	default:
		return able
	}
	return ClientGroup{Answer: Cannot, Reason: "because " + e.clean(reason),
		Remedy: "see the log of the server, or with Pasteport `pasteport trace --doctor`"}
}

// webRedirect returns the first redirect URI on the web or this computer, because a server may
// refuse the private schemes of apps.
func webRedirect(redirects []string) string {
	for _, redirect := range redirects {
		if u, err := url.Parse(redirect); err == nil && (u.Scheme == "https" || u.Scheme == "http") {
			return redirect
		}
	}
	return redirects[0]
}
