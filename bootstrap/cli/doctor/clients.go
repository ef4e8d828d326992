package doctor

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// knownClient is a client that many people use.
type knownClient struct {
	name        string
	document    string // URL of its metadata document, which is its client_id; "" if it registers itself
	atMaker     bool   // its maker's servers connect, and not the person's computer
	needsSecret bool   // it registers itself and insists on a client secret
}

// wellKnown are the clients that the report tells about. docs/clients.md has the evidence with
// dates.
var wellKnown = []knownClient{
	{name: "Claude", document: "https://claude.ai/oauth/mcp-oauth-client-metadata", atMaker: true},
	{name: "Claude Code", document: "https://claude.ai/oauth/claude-code-client-metadata"},
	{name: "ChatGPT", document: "https://chatgpt.com/oauth/client.json", atMaker: true},
	{name: "Codex", document: "https://chatgpt.com/oauth/codex/client.json"},
	{name: "VS Code", document: "https://vscode.dev/oauth/client-metadata.json"},
	{name: "VS Code Insiders", document: "https://insiders.vscode.dev/oauth/client-metadata.json"},
	{name: "GitHub Copilot CLI", document: "https://github.com/copilot/cli/client-metadata.json"},
	{name: "Goose", document: "https://goose-docs.ai/oauth/client-metadata.json"},
	{name: "Zed", document: "https://zed.dev/oauth/client-metadata.json"},
	{name: "Factory Droid", document: "https://api.factory.ai/mcp/oauth-client"},
	{name: "Grok", document: "https://grok.com/oauth/mcp-client.json", atMaker: true},
	{name: "Notion", document: "https://app.notion.com/oauth/mcp-client-metadata.json", atMaker: true},
	{name: "Cursor"}, {name: "Gemini CLI"}, {name: "opencode"}, {name: "LM Studio"}, {name: "Warp"},
	{name: "Raycast"}, {name: "Cline"}, {name: "Amp"}, {name: "GitHub Copilot in JetBrains"}, {name: "mcp-remote"},
	{name: "MCP Inspector"},
	{name: "Microsoft Copilot Studio", atMaker: true, needsSecret: true},
	{name: "Microsoft 365 Copilot", atMaker: true, needsSecret: true},
	{name: "Mistral Le Chat", atMaker: true, needsSecret: true},
}

// Excluded returns the names of the well-known clients that cannot connect to a service, because it
// does not let them register themselves or its list of clients leaves them out.
func Excluded(config service.Config) (names []string) {
	for _, client := range wellKnown {
		host, _, _ := strings.Cut(strings.TrimPrefix(client.document, "https://"), "/")
		admitted := len(config.AllowClients) == 0 || slices.Contains(config.AllowClients, host)
		if host == "" && !config.SelfRegistration || host != "" && !admitted {
			names = append(names, client.name)
		}
	}
	return names
}

// allWellKnown is the value of --clients without one.
const allWellKnown = "well-known"

// namedClients returns the clients at the client_ids in a text.
func namedClients(clientIDs string) (clients []knownClient) {
	for document := range strings.SplitSeq(clientIDs, ",") {
		clients = append(clients, knownClient{name: document, document: document})
	}
	return clients
}

func areDocuments(clients []knownClient) bool {
	return !slices.ContainsFunc(clients, func(c knownClient) bool { return !strings.HasPrefix(c.document, "https://") })
}

// The answers to whether clients can log in.
const (
	ableTo     = "can"
	unableTo   = "cannot"
	notChecked = "not checked"
)

// clientGroup are the clients with the same answer for the same reason. Those that can have no
// Reason, and only a Reason that the operator can change has a Remedy.
type clientGroup struct {
	Answer string   `json:"answer"`
	Reason string   `json:"reason,omitempty"`
	Remedy string   `json:"remedy,omitempty"`
	Names  []string `json:"names"`
}

var (
	able       = clientGroup{Answer: ableTo}
	needSecret = clientGroup{Answer: unableTo, Reason: "because they need a client secret, and get none here"}
	outOfReach = clientGroup{Answer: unableTo,
		Reason: "because they run on servers of their makers, which cannot reach this computer"}
	unfetched    = clientGroup{Answer: notChecked, Reason: "because this computer cannot fetch their documents"}
	unregistered = clientGroup{
		Answer: unableTo, Reason: "because they register themselves and self-registration is off",
		Remedy: "set self-registration: true to let them",
	}
)

// Which clients register is the operator's decision, so that clients which cannot log in are no
// warning.
var clientChecks = []check{{
	id:       "clients.login",
	question: "Which well-known clients can log in?",
	needs:    []string{"server.metadata"},
	why:      "Some clients identify themselves by a published document, and others register themselves.",
	run:      (*examination).knownClients,
}}

func (e *examination) knownClients(ctx context.Context) finding {
	v, known := ok("by the metadata; --clients asks the server about each client with a document"), wellKnown
	if e.clients != "" {
		v = ok("by the metadata, and by an authorization request for each client with a document")
	}
	if e.clients != "" && e.clients != allWellKnown {
		known = namedClients(e.clients)
	}
	for _, client := range known {
		v.Clients = addTo(v.Clients, e.canLogIn(ctx, client), client.name)
	}
	slices.SortStableFunc(v.Clients, func(a, b clientGroup) int { return strings.Compare(a.Answer, b.Answer) })
	return v
}

func addTo(groups []clientGroup, group clientGroup, name string) []clientGroup {
	for i := range groups {
		if groups[i].Answer == group.Answer && groups[i].Reason == group.Reason {
			groups[i].Names = append(groups[i].Names, name)
			return groups
		}
	}
	group.Names = []string{name}
	return append(groups, group)
}

func (e *examination) canLogIn(ctx context.Context, client knownClient) clientGroup {
	switch {
	case client.atMaker && isLoopback(e.endpoint):
		return outOfReach
	case client.needsSecret && !e.issuesSecrets():
		return needSecret
	case client.document == "" && e.server.text("registration_endpoint") == "":
		return unregistered
	case client.document != "" && e.clients != "":
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
func (e *examination) askFor(ctx context.Context, client knownClient) clientGroup {
	published, v := e.wire.document(ctx, client.document)
	redirects := published.list("redirect_uris")
	if v.Status != statusOK || len(redirects) == 0 {
		return unfetched
	}
	refusal := explainRefusal(e.ask(ctx, client.document, webRedirect(redirects)))
	if refusal == "" {
		return able
	}
	return clientGroup{Answer: unableTo, Reason: "because " + e.clean(refusal),
		Remedy: "see the log of the server, or `pasteport trace --doctor`"}
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

// next recommends what to do after reading the report.
func next(d diagnosis) string {
	if worst := d.first(d.Result); worst.Mend != "" {
		return "mend " + worst.ID + ", then run doctor again: " + worst.Mend
	}
	can, cannot := "no client of those that were checked", ""
	for _, found := range d.Checks {
		for _, group := range found.Clients {
			switch {
			case group.Answer == ableTo:
				can = some(group.Names)
			case group.Remedy != "":
				cannot += "; " + some(group.Names) + " cannot, " + group.Reason + ": " + group.Remedy
			}
		}
	}
	if missing := d.first(skipped); missing.ID != "" && missing.ID != upstreamID {
		return can + " should be able to log in" + cannot + "; the rest was skipped " + missing.Seen + unchecked(d)
	}
	if cannot == "" {
		can = "nothing to do: " + can
	}
	return can + " can connect to " + d.URL + cannot
}

// unchecked says that a gateway was not asked about its upstreams.
func unchecked(d diagnosis) string {
	if d.Checks[len(d.Checks)-1].ID != upstreamID { // the check of an upstream has its path, too
		return ""
	}
	return "; if this is a gateway, the MCP server behind it was not checked"
}

const fewNames = 3 // in the last line of the report; the check clients.login lists all

func some(names []string) string {
	if len(names) <= fewNames {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:fewNames], ", ") + " and others"
}
