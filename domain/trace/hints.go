package trace

import (
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
)

var names = map[Kind]string{
	Challenge: "challenge", ResourceMetadata: "resource metadata", ServerMetadata: "server metadata", Registration: "registration",
	Authorize: "authorization request", ClientMetadata: "client metadata", Page: "consent page", TokenJudged: "token judged",
	CodeIssued: "code issued", Exchange: "code exchanged", Stream: "stream opened", Call: "MCP call", Refresh: "refresh", Ended: "ended",
}

// Name returns the step's name for people.
func (k Kind) Name() string { return names[k] }

const connectAgain = "The person has to connect again with a token that holds: the old one has expired or was revoked, at the site or at the MCP " +
	"server behind the gateway."

const tellMaker = "Only the maker of the client can mend that; tell them the rule."

// hints are the remedies for a refusal, by its rule.
var hints = map[string]string{
	"A8":  "Your configuration lets only certain clients connect; add this client's host if it may.",
	"A10": "The client has to send its redirect_uri. " + tellMaker,
	"A12": "Compare the redirect_uri that the client sends with those in its published document; only the port of a loopback " +
		"address may differ. " + tellMaker,
	"A14": "If this is an installed app, allow its scheme with allowed-private-schemes.",
	"A25": "The client asks for scopes that are not configured here; configure them or take them out of the client's settings.",
	"A30": "The URL that the client was given has to be a configured resource, byte for byte but for a slash at the end.",
	"B4":  "The page was open too long, or the service's secret has changed meanwhile; the person has to start again in the client.",
	"B5":  "Nothing to mend: the person pressed \"Deny\".",
	"B6": "Too many wrong tokens came from this network or from all networks together. Nothing to mend if the person got in afterwards. If all " +
		"people seem to share one address, configure trusted-proxies; list networks that you know in unlimited-networks, or raise " +
		"max-wrong-tokens-per-address, max-wrong-tokens-per-network, max-wrong-tokens-per-prefix48 or max-wrong-tokens.",
	"B7": "The person pasted something that is no token; token-help can link to the page that shows it.",
	"B8": "The site does not know the pasted token: it has expired, was revoked or is of another site; token-help can link to a new one.",
	"B9": "The site could not be asked about the token. Look whether it answers, and at the log. Behind a gateway the MCP server itself is " +
		"asked; one that takes any token is not believed, so choose another verifier.",
	"B20": "Too many pasted tokens waited for their check. Look at how long your site takes to check one, or raise max-verifications.",
	"B10": "The pasted token may not do what the client asks for; the site decides that when it is asked about the token.",
	"C9":  "The client's document may not lie on this service's own host.",
	"C21": "Too many documents are being fetched, often because of an attack; an address that has spent its fetches still has three a minute from " +
		"each domain. If all clients seem to have one address, configure trusted-proxies. " +
		"Otherwise raise max-fetches, max-fetches-per-address, max-fetches-per-domain or the two max-fetches-per-minute settings, or list " +
		"networks in unlimited-networks; the log names the limit that was reached.",
	"C41": "Try to fetch the client's address from this computer: its DNS, firewall and certificate are what counts; addresses inside " +
		"your network are refused.",
	"C42": "Try to fetch the client's address from this computer: it has to answer with status 200 and JSON; redirects are not followed.",
	"C43": "The client's published document is not valid JSON as it has to be. " + tellMaker,
	"C53": "The client's host has timed out three times in a row, so it is not tried for a while for the person's /24 or /48. Try to fetch the " +
		"client's address from this computer: it has to answer within 3 seconds.",
	"D6": tellMaker,
	"D22": "The code or token is none of this service's, or was forgotten: look whether the client talks to the right deployment, " +
		"and whether all replicas share one store and one secret.",
	"D14": "The client took too long; auth-code-ttl is how long a code lives. Look at the clocks too.",
	"D16": "The code was intercepted, or the client mixed up two attempts. " + tellMaker,
	"D19": "The client sent the same code twice. Within ten seconds that counts as a retry and ends nothing; later it ends the connection for safety, and the person has to connect again.",
	"D27": "A replaced refresh token came back after the window of refresh-grace, so the connection was ended for safety: two programs " +
		"may share one client's storage.",
	"D31": "The network has sent more unknown codes and refresh tokens in a minute than max-unknown-tokens-per-minute allows. Known ones still work. " +
		"If it is your proxy's address, configure trusted-proxies; unlimited-networks lifts the limit for a network.",
	"D33": "The client has to sign with a key that it publishes; look at its clock, which may be 30 seconds off at most.",
	"F4":  sequels[Registration].hint,
	"F5":  "The client looks for an OpenID provider; it should go on with /.well-known/oauth-authorization-server.",
	"G1":  "A web page calls the MCP endpoint from another origin or under another host name; allow it with allowed-origins or allowed-hosts if it is yours.",
	"G7":  "The client's token is no longer good; it should refresh it or ask the person to connect again.",
	"G8":  "The client's token is for another MCP server; each needs its own.",
	"G19": "A message was longer than max-request-body, a batch had more messages than it may have, or all messages under way took the memory " +
		"that there is for them: raise max-request-body, give the process more memory, or send smaller batches.",
	"G20": "One person had more MCP sessions open than max-sessions-per-person allows, or all people together more than max-sessions, so the " +
		"idlest session ended. Most clients open another one by themselves; raise the setting if people lose sessions that they use.",
	"U6": "The client's token is from before the site's token was sent on; a refresh brings one that can open it.",
	"U8": connectAgain,
	"U9": "Look at the MCP server behind the gateway: whether it runs, at the very address that upstream names, and answers within " +
		"upstream-timeout. If it does not know the host name, set upstream-host to one that it allows. The log has the cause under the request's id.",
	"U10": "The MCP server behind the gateway has failed five times in a row. It is tried again every five seconds; the steps before, and " +
		"the log, say what is wrong with it.",
	"U11": "The MCP server behind the gateway could read the message in another way than the gateway, so it never saw it. " + tellMaker,
	"U16": "The MCP server behind the gateway has forgotten its sessions, as after a restart. Most clients open a new one by themselves; nobody has to connect again.",
	"U17": "The MCP server behind the gateway answered 401, although the verifier knows the token. Check that the server accepts the same tokens as the verifier, and its own log.",
	"U12": "The client names a session of another person or client, or of before the service's secret was changed. Most open a new one by themselves.",
}

// endings are the reasons why a grant ended, for people.
var endings = map[oauth.EndReason]string{
	oauth.EndedByCodeReplay: "its code was used a second time, so somebody else may have it.",
	oauth.EndedByReuse:      "a refresh token that was replaced came back, so somebody else may have it.",
	oauth.EndedByRevocation: "the client gave its tokens back.",
	oauth.EndedByHostToken:  "the site does not know the person's token any more.",
	oauth.EndedByLostKey:    "the server secret under which it was made is gone.",
	oauth.EndedByHost:       "the site ended what was granted with this token.",
	oauth.EndedByPerson:     "the person ended it on the page of their connections.",
	oauth.EndedByOperator:   "the operator ended it.",
	oauth.EndedByLimit:      "its token had more connections than max-grants-per-token allows, and this one was unused for longest.",
}

// needsProxy is advice for a service that has not reached a single metadata host. Its operator may rely on HTTPS_PROXY.
const needsProxy = " No metadata host has answered so far: where a proxy is the only way out, name it with metadata-proxy, because HTTPS_PROXY is " +
	"not used for metadata; if it is named already, see whether it can be reached and lets this service through."

// reachedMetadataHost reports whether a metadata host has answered at this step, or earlier so that its document was remembered.
func (s Step) reachedMetadataHost() bool {
	return s.Kind == ClientMetadata && (s.Outcome == Passed || s.Outcome == Refused && s.Rule != "C41" && s.Rule != "C53")
}

func endingOf(reason oauth.EndReason) string {
	if words, known := endings[reason]; known {
		return words
	}
	return string(reason)
}

// afterwards are the remedies for an unwanted end.
var afterwards = map[oauth.EndReason]string{
	oauth.EndedByHostToken: connectAgain,
	oauth.EndedByLimit: "The person can end connections on the page of their connections and connect this one again; raise max-grants-per-token if people " +
		"use more.",
}

// hintFor returns the advice for the rule, else one for the step.
func hintFor(step Step) string {
	for rule := range strings.SplitSeq(step.Rule, ", ") {
		if hint, found := hints[rule]; found {
			return hint
		}
	}
	switch {
	case step.Outcome == Failed:
		return "The log says more under the request " + step.Request + "."
	case strings.HasPrefix(step.Rule, "A"), strings.HasPrefix(step.Rule, "C"), strings.HasPrefix(step.Rule, "D"):
		return tellMaker
	}
	return ""
}
