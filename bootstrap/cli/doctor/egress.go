package doctor

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/bootstrap/cli/term"
	"github.com/pasteport/pasteport/bootstrap/service"
)

// checkEgressArgs finds mistakes in the flags and arguments of `doctor --egress`.
func (o doctorOptions) checkEgressArgs(documents []string) error {
	if o.token != "" || o.clientID != "" || o.origin != "" || o.printDocument {
		return term.Usagef("--egress fetches documents of clients and checks no server: leave out --token, " +
			"--client-id, --origin and --print-client-document")
	}
	for _, document := range documents {
		if !strings.HasPrefix(document, "https://") {
			return term.Usagef("--egress takes the client_ids of clients, which are https URLs of their documents")
		}
	}
	return nil
}

// runEgress fetches the named documents, or those of the well-known clients, all at the same time.
// explain names settings in the spelling of the user.
func (o doctorOptions) runEgress(ctx context.Context, config *service.Config, explain func(error) error,
	documents []string, r *reporter) (err error) {
	if config.RootCAs, err = readAuthorities(o.authorities); err != nil {
		return err
	}
	probe, err := config.NewClientProbe()
	if err != nil {
		return explain(err)
	}
	clients, err := clientsAt(documents, probe)
	if err != nil {
		return err
	}
	r.begin("fetching the documents of clients")
	report := Diagnosis{Result: OK}
	for _, found := range fetchAll(ctx, probe, clients) {
		report.Add(found)
		r.end(found)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("fetching the documents of clients: %w", err)
	}
	report.Next = nextForEgress(report)
	return r.conclude(report)
}

// clientsAt returns clients for the documents, or the well-known ones when none is named.
func clientsAt(documents []string, probe *bootstrap.ClientProbe) (clients []knownClient, err error) {
	if len(documents) == 0 {
		return wellKnownClients, nil
	}
	for _, document := range documents {
		if err := probe.Check(document); err != nil {
			return nil, term.Usagef("%q is not the client_id of a client: %w", document, err)
		}
		clients = append(clients, knownClient{name: "document", document: document})
	}
	return clients, nil
}

func fetchAll(ctx context.Context, probe *bootstrap.ClientProbe, clients []knownClient) []Finding {
	findings := make([]Finding, len(clients))
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
func describe(client knownClient, answer bootstrap.ClientAnswer, err error) Finding {
	found := Finding{
		ID:     client.name,
		Asks:   "fetch " + client.document,
		Status: OK,
		Seen:   "reachable: " + client.document,
	}
	if err == nil {
		return found
	}
	found.Status, found.Breaks = Failure, []string{client.name}
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

// nextForEgress recommends what to do after reading the report.
func nextForEgress(d Diagnosis) string {
	if first := d.First(Failure); first.ID != "" {
		return "mend " + first.ID + ", then run doctor --egress again: " + first.Mend
	}
	return "nothing to do: this computer can fetch the documents of clients"
}
