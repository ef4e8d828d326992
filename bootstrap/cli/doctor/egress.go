package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
)

// checkEgressArgs finds mistakes in the flags and arguments of `doctor --egress`.
func (o *options) checkEgressArgs(documents []string) error {
	switch {
	case o.token != "" || o.origin != "":
		return term.Usagef("--egress fetches documents of clients and checks no server: leave out --token and --origin")
	case len(documents) > 0 && !areDocuments(namedClients(strings.Join(documents, ","))):
		return term.Usagef("--egress takes the client_ids of clients, which are https URLs of their documents")
	}
	return nil
}

// runEgress fetches the named documents, or those of the well-known clients, all at the same time.
// explain names settings in the spelling of the user.
func (o *options) runEgress(ctx context.Context, explain func(error) error, documents []string, r *reporter) error {
	o.config.RootCAs = o.roots
	probe, err := o.config.NewClientProbe()
	if err != nil {
		return explain(err)
	}
	clients := slices.DeleteFunc(slices.Clone(wellKnown), func(c knownClient) bool { return c.document == "" })
	if len(documents) > 0 {
		clients = nil
	}
	for _, document := range documents {
		if err := probe.Check(document); err != nil {
			return term.Usagef("%q is not the client_id of a client: %w", document, err)
		}
		clients = append(clients, knownClient{name: "document", document: document})
	}
	d := diagnosis{Result: statusOK}
	for _, found := range fetchAll(ctx, probe, clients) {
		d.add(found, r)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("fetching the documents of clients: %w", err)
	}
	d.Next = "nothing to do: this computer can fetch the documents of clients"
	if first := d.first(failure); first.ID != "" {
		d.Next = "mend " + first.ID + ", then run doctor --egress again: " + first.Mend
	}
	return r.conclude(d)
}

func fetchAll(ctx context.Context, probe *bootstrap.ClientProbe, clients []knownClient) []finding {
	findings := make([]finding, len(clients))
	var fetches sync.WaitGroup
	for i, client := range clients {
		fetches.Go(func() {
			answer, err := probe.Fetch(ctx, client.document)
			findings[i] = describe(client, answer, err)
		})
	}
	fetches.Wait()
	return findings
}

// describe reports whether the document was fetched, and whether a bot challenge, the network or
// the document is the cause if it was not.
func describe(client knownClient, answer bootstrap.ClientAnswer, err error) finding {
	found := finding{
		ID:     client.name,
		Asks:   "fetch " + client.document,
		Status: statusOK,
		Seen:   "reachable: " + client.document,
	}
	if err == nil {
		return found
	}
	found.Status = failure
	found.Why = "a service on this computer cannot look up the client, so people cannot connect with it for the " +
		"first time"
	signs := challengeSigns(answer)
	reason := strings.TrimPrefix(err.Error(), "oauth: ")
	switch {
	case len(signs) > 0:
		found.Seen = "blocked: " + strings.Join(signs, ", ") + ": " + client.document
		found.Mend = "pin the document with client-documents (\"pasteport clients fetch\" on another computer makes " +
			"the file), or fetch through " +
			"a proxy with another address: metadata-proxy"
	case answer.Status == 0 || answer.Status >= http.StatusInternalServerError:
		found.Seen = "unreachable: " + reason
		found.Mend = "check DNS, firewall and certificates of this computer; if a proxy is the only way out, set " +
			"metadata-proxy"
	default:
		found.Seen = "wrong: " + reason
		found.Why = "a service refuses this client, because it has no valid document at this address"
		found.Mend = "nothing can be changed here: tell the maker of the client"
	}
	return found
}

// challengeSigns returns what shows that a host refuses this computer, rather than having no
// document.
func challengeSigns(answer bootstrap.ClientAnswer) (signs []string) {
	if answer.Status == http.StatusForbidden || answer.Status == http.StatusTooManyRequests {
		signs = append(signs, fmt.Sprintf("status %d", answer.Status))
	}
	if answer.Mitigated != "" {
		signs = append(signs, fmt.Sprintf("cf-mitigated %.40q", answer.Mitigated))
	}
	isHTML := strings.HasPrefix(strings.ToLower(answer.ContentType), "text/html")
	if isHTML && (answer.Status == http.StatusOK || len(signs) > 0) {
		signs = append(signs, "HTML instead of JSON")
	}
	return signs
}
