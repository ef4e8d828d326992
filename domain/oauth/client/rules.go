// Package client has the rules for OAuth clients: their ids and metadata documents (CIMD), how they
// register themselves (RFC 7591) and how they authenticate. Rules has them for one authorization
// server; Metadata is a client that they admit.
package client

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/seal"
	"github.com/pasteport/pasteport/domain/uri"
)

// Rules are the rules of one authorization server. The zero value is the strictest, without clients
// that register themselves or that the server hosts.
type Rules struct {
	config oauth.Config
	keys   seal.KeyRing
	hosted map[string]*Metadata // by client_id
}

// NewRules returns the rules of a Config, of which it uses only the Issuer, the secrets and the
// fields about clients. Its error joins one oauth.Mistake for each wrong field about clients.
func NewRules(c oauth.Config) (*Rules, error) {
	r := &Rules{
		config: c,
		keys:   c.KeyRing(),
		hosted: map[string]*Metadata{},
	}
	var mistakes []error
	for _, scheme := range c.AllowedPrivateSchemes {
		odd := strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != ""
		if scheme == "" || odd || slices.Contains(forbiddenSchemes, scheme) || scheme == "http" || scheme == "https" {
			mistakes = append(mistakes, oauth.NewMistake("AllowedPrivateSchemes",
				"has %q: only lower-case schemes of applications can be allowed", scheme))
		}
	}
	if c.Issuer != "" { // with which the ids of hosted clients begin
		mistakes = append(mistakes, r.host(c.HostedClients)...)
	}
	return r, errors.Join(mistakes...)
}

// HostedPath is the path, below the issuer, of the documents of oauth.Config.HostedClients.
const HostedPath = "/oauth/documents/"

// host adds the clients whose metadata the strictest rules allow, and reports the others.
func (r *Rules) host(clients []oauth.HostedClient) (mistakes []error) {
	refuse := func(sentence string, values ...any) {
		mistakes = append(mistakes, oauth.NewMistake("HostedClients", sentence, values...))
	}
	for _, hosted := range clients {
		id := oauth.RestoreClientID(r.config.Issuer + HostedPath + hosted.Path)
		redirects := make([]any, 0, len(hosted.RedirectURIs))
		for _, redirect := range hosted.RedirectURIs {
			redirects = append(redirects, redirect)
		}
		client, err := new(Rules).NewMetadata(id, map[string]any{
			"client_id": id.String(), "client_name": hosted.Name, "redirect_uris": redirects,
		})
		switch {
		case hosted.Path == "" || strings.Trim(hosted.Path, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
			refuse("has the path %q: write lower-case letters, digits and hyphens", hosted.Path)
		case err != nil:
			refuse(": the client %q: %s", hosted.Path, oauth.RefusalOf(err).Description)
		case client.IgnoredRedirects > 0 || slices.ContainsFunc(client.redirects, func(target oauth.RedirectURI) bool {
			return !target.Loopback()
		}):
			refuse(": the client %q has a redirect URI that is not on loopback: write http://127.0.0.1/ or "+
				"http://localhost/ and a path", hosted.Path)
		default:
			r.hosted[id.String()] = client
		}
	}
	if len(mistakes) == 0 && len(r.hosted) < len(clients) {
		refuse("has a path twice: keep one")
	}
	return mistakes
}

// Hosted returns the client if it is one of oauth.Config.HostedClients, otherwise nil.
func (r *Rules) Hosted(id oauth.ClientID) *Metadata { return r.hosted[id.String()] }

// AllHosted returns the HostedClients in the order of their ids.
func (r *Rules) AllHosted() (clients []*Metadata) {
	for _, id := range slices.Sorted(maps.Keys(r.hosted)) {
		clients = append(clients, r.hosted[id])
	}
	return clients
}

// IsPublishedHere reports whether this server has the metadata of the client, so that it is never
// fetched.
func (r *Rules) IsPublishedHere(id oauth.ClientID) bool {
	return r.IsSelfRegistered(id) || r.Hosted(id) != nil
}

// CheckAllowed refuses a client that Config.AllowClient does not allow, with ClientNotAllowed. A
// client of Config.HostedClients is always allowed.
func (r *Rules) CheckAllowed(id oauth.ClientID) error {
	allows := r.config.AllowClient
	if r.Hosted(id) == nil && allows != nil && !allows(uri.HostOf(strings.ToLower(r.PublisherOf(id)))) {
		return oauth.Refuse(oauth.ClientNotAllowed, "A8", "this app is not allowed here")
	}
	return nil
}

// IsSelfRegistered reports whether the id begins like those of Register. Open may still refuse it.
func (r *Rules) IsSelfRegistered(id oauth.ClientID) bool {
	return strings.HasPrefix(id.String(), r.registeredPrefix())
}

// registeredPrefix is the beginning of the ids of clients that registered themselves.
func (r *Rules) registeredPrefix() string { return r.config.Issuer + RegisteredPath }

// PublisherOf returns the host that publishes the client's document, or oauth.SelfRegistered.
func (r *Rules) PublisherOf(id oauth.ClientID) string {
	if r.IsSelfRegistered(id) {
		return oauth.SelfRegistered
	}
	return id.Host()
}

const labelLength = 12 // characters of a box; they differ, because a box begins with a random nonce

// LabelOf returns a short name of the client for logs and the trace: its id, or
// oauth.SelfRegistered with the beginning of its box and the name that it claims, in quotes.
func (r *Rules) LabelOf(id oauth.ClientID, claimed string) string {
	box, registered := strings.CutPrefix(id.String(), r.registeredPrefix())
	if !registered {
		return id.String()
	}
	label := oauth.SelfRegistered + "/" + box[:min(len(box), labelLength)]
	if claimed != "" {
		label += " " + strconv.QuoteToASCII(claimed)
	}
	return label
}

// LabelOfID is LabelOf with the name that the id of a client that registered itself contains.
func (r *Rules) LabelOfID(id oauth.ClientID) string {
	if r.IsSelfRegistered(id) {
		if client, err := r.Open(id); err == nil {
			return r.LabelOf(id, client.Name)
		}
	}
	return r.LabelOf(id, "")
}
