package doctor

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const (
	serverWellKnown = "/.well-known/oauth-authorization-server"
	openIDWellKnown = "/.well-known/openid-configuration"
)

var serverChecks = []check{
	{
		id: "server.document", question: "Can the metadata of the authorization server be read?",
		needs:  []string{"resource.servers"},
		why:    "It names every endpoint of the login (RFC 8414 §3). Without it clients guess addresses or give up.",
		breaks: everyClient, run: (*examination).readServer,
	},
	{
		id: "server.type", question: "Is it served as application/json?", needs: []string{"server.document"},
		why: "RFC 8414 §3.2 requires this content type.", breaks: []string{goSDK},
		run: func(e *examination, _ context.Context) checkResult { return typeOf(e.server) },
	},
	{
		id: "server.issuer", question: "Is its issuer the one in the resource metadata?",
		needs:  []string{"server.document"},
		why:    "Clients compare both (RFC 8414 §3.3), so that one server cannot impersonate another.",
		breaks: []string{goSDK, "every client that checks the issuer"}, run: (*examination).sameIssuer,
	},
	{
		id: "server.endpoints", question: "Are all endpoints present and protected?",
		needs: []string{"server.document"},
		why: "A login needs the authorization and the token endpoint; over http others on the network can read " +
			"the code, the token and the person's own token.",
		breaks: everyClient, run: (*examination).endpoints,
	},
	{
		id: "server.pkce", question: "Does it support PKCE with S256?", needs: []string{"server.document"},
		why: "MCP clients must use it, and must refuse servers that do not list it in " +
			"code_challenge_methods_supported.",
		breaks: []string{goSDK, "every client that follows the MCP specification"}, run: (*examination).pkce,
	},
	{
		id: "server.public_clients", question: "Does it accept clients without a secret?",
		needs: []string{"server.document"},
		why: "Clients on people's computers, or with a metadata document, have no secret. A missing list means " +
			"client_secret_basic (RFC 8414 §2).",
		breaks: []string{claude + `, which looks for "none"`, claudeCode + ", whose document has none"},
		run:    (*examination).publicClients,
	},
	{
		id: "server.responses", question: "Does it return a code in the query?", needs: []string{"server.document"},
		why: "response_types_supported is required (RFC 8414 §2), and OAuth 2.1 has only code.", breaks: everyClient,
		run: (*examination).responses,
	},
	{
		id: "server.grants", question: "Does it support refresh tokens?", needs: []string{"server.document"},
		why: "Without refresh tokens people log in again whenever the access token expires, often every hour. The " +
			"official TypeScript SDK requests them " +
			"when offline_access is in scopes_supported here.",
		breaks: []string{"every client, when the access token expires"}, run: (*examination).grants,
	},
	{
		id: "server.iss", question: "Does it advertise iss in authorization responses?",
		needs: []string{"server.document"},
		why: "iss in the authorization response (RFC 9207) identifies the responding server; the official Go SDK " +
			"refuses an iss that the metadata does not advertise.",
		breaks: []string{goSDK + ", if iss is not advertised"}, run: (*examination).iss,
	},
	{
		id: "server.documents", question: "Does it accept Client ID Metadata Documents?",
		needs: []string{"server.public_clients"},
		why: "Current clients identify themselves with Client ID Metadata Documents. A server that supports only " +
			"dynamic registration " +
			"(registration_endpoint) excludes clients that have only a document.",
		breaks: []string{claude + ", which looks for client_id_metadata_document_supported",
			claudeCode + " with its document", goSDK + " that have only a document"},
		run: (*examination).documents,
	},
	{
		id: "server.openid", question: "Is the OpenID configuration complete or absent?",
		needs: []string{"server.document"},
		why: "Clients also look for one. With 404 they continue; an error, a redirect or an incomplete document " +
			"stops them.",
		breaks: []string{tsSDK}, run: (*examination).openID,
	},
}

// serverURLs returns the possible URLs of the document: the one of RFC 8414 §3.1 and two of OpenID.
func (e *examination) serverURLs() []string {
	issuer, _ := url.Parse(strings.TrimSuffix(e.issuer, "/")) // parsed by the check resource.servers
	return []string{
		originOf(issuer) + serverWellKnown + issuer.EscapedPath(),
		originOf(issuer) + openIDWellKnown + issuer.EscapedPath(),
		issuer.String() + openIDWellKnown,
	}
}

func (e *examination) readServer(ctx context.Context) (v checkResult) {
	places := e.serverURLs()
	for _, place := range places {
		if e.server, v = e.wire.document(ctx, place); v.status == OK || e.server.status != http.StatusNotFound {
			return v
		}
	}
	return fail("Publish the metadata at "+places[0]+" (the path of the issuer follows the well-known path), "+
		"and let the proxy pass /.well-known/oauth-* to the server.", "not found; the last attempt: %s", e.server)
}

func (e *examination) sameIssuer(context.Context) checkResult {
	if issuer := e.server.text("issuer"); issuer != e.issuer {
		return fail("Spell the issuer the same in both documents, byte for byte: https, without a trailing slash. "+
			"A server that builds it from requests needs a setting with its public URL.",
			"issuer is %q, the resource metadata has %q", issuer, e.issuer)
	}
	return ok("%s", e.issuer)
}

func (e *examination) endpoints(context.Context) checkResult {
	for _, name := range []string{"authorization_endpoint", "token_endpoint", "revocation_endpoint",
		"registration_endpoint"} {
		endpoint, named := e.server.members[name]
		if !named && (name == "revocation_endpoint" || name == "registration_endpoint") {
			continue
		}
		target, _ := endpoint.(string)
		switch {
		case target == "":
			return fail("Add "+name+" with its absolute URL.", "%s is missing", name)
		case !isProtected(target), e.Endpoint.Scheme == "https" && !strings.HasPrefix(target, "https:"):
			return fail(mendScheme, "%s is %q", name, target)
		}
	}
	return ok("%s, %s", e.server.text("authorization_endpoint"), e.server.text("token_endpoint"))
}

// offers reports whether a list of the metadata has the value, and describes the list.
func (e *examination) offers(member, value string) (found bool, description string) {
	values := e.server.list(member)
	if _, there := e.server.members[member]; !there {
		return false, member + " is missing"
	}
	return slices.Contains(values, value), member + ": " + strings.Join(values, " ")
}

func (e *examination) pkce(context.Context) checkResult {
	if found, list := e.offers("code_challenge_methods_supported", "S256"); !found {
		return fail(`Support S256 and publish "code_challenge_methods_supported": ["S256"].`, "%s", list)
	}
	return ok("S256")
}

func (e *examination) publicClients(context.Context) checkResult {
	found, list := e.offers("token_endpoint_auth_methods_supported", "none")
	if !found {
		return fail(`Let clients without a secret exchange codes, and add "none" to `+
			`token_endpoint_auth_methods_supported.`, "%s", list)
	}
	return ok("%s", list)
}

func (e *examination) responses(context.Context) checkResult {
	if found, list := e.offers("response_types_supported", "code"); !found {
		return fail(`Publish "response_types_supported": ["code"].`, "%s", list)
	}
	if modes := e.server.list("response_modes_supported"); len(modes) > 0 && !slices.Contains(modes, "query") {
		return fail(`Return responses in the query, and add "query" to response_modes_supported.`,
			"response_modes_supported: %s", strings.Join(modes, " "))
	}
	return ok("code")
}

func (e *examination) grants(context.Context) checkResult {
	if found, list := e.offers("grant_types_supported", "authorization_code"); !found &&
		e.server.members["grant_types_supported"] != nil {
		return fail(`Add "authorization_code" to grant_types_supported.`, "%s", list)
	}
	if found, list := e.offers("grant_types_supported", "refresh_token"); !found {
		return warn(`Issue refresh tokens, and add "refresh_token" to grant_types_supported.`, "%s", list)
	}
	if found, list := e.offers("scopes_supported", offlineAccess); !found {
		return warn("Add offline_access to scopes_supported of the authorization server, and issue a refresh token "+
			"to every client that requests it.", "%s", list)
	}
	return ok("refresh tokens, for offline_access")
}

func (e *examination) iss(context.Context) checkResult {
	if !e.server.flag("authorization_response_iss_parameter_supported") {
		return warn(`Send iss with every authorization response, and publish `+
			`"authorization_response_iss_parameter_supported": true.`,
			"authorization_response_iss_parameter_supported is not true")
	}
	return ok("yes")
}

func (e *examination) documents(context.Context) checkResult {
	_, registers := e.server.members["registration_endpoint"]
	switch {
	case e.server.flag("client_id_metadata_document_supported") && registers:
		return ok("yes, and dynamic registration too")
	case e.server.flag("client_id_metadata_document_supported"):
		return ok("yes; a client that can only register needs a client_id from the operator")
	case registers:
		return fail(`Fetch and validate client documents, and publish "client_id_metadata_document_supported": true; `+
			`registration may stay enabled.`,
			"dynamic registration only: there is a registration_endpoint, but client_id_metadata_document_supported "+
				"is not true")
	}
	return fail(`Fetch and validate client documents, and publish "client_id_metadata_document_supported": true. `+
		`Until then every client must be registered by hand.`,
		"neither client_id_metadata_document_supported nor a registration_endpoint")
}

func (e *examination) openID(ctx context.Context) checkResult {
	const mend = "Return 404 there unless the server is an OpenID provider; otherwise publish the whole document."
	a := e.wire.get(ctx, e.serverURLs()[1])
	d := parse(a)
	switch {
	case a.status >= 400 && a.status < 500:
		return ok("not found, which is allowed")
	case a.status != http.StatusOK:
		return warn(mend, "%s", a)
	case d.malformed != nil:
		return warn(mend, "%v", d.malformed)
	}
	for _, member := range []string{"jwks_uri", "subject_types_supported", "id_token_signing_alg_values_supported"} {
		if _, there := d.members[member]; !there {
			return warn(mend, "%s has no %s", a.url, member)
		}
	}
	return ok("it is complete")
}
