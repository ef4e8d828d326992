package trace

import (
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
)

var names = map[Kind]string{
	Challenge:        "challenge",
	ResourceMetadata: "resource metadata",
	ServerMetadata:   "server metadata",
	Registration:     "registration",
	Authorize:        "authorization request",
	ClientMetadata:   "client metadata",
	Page:             "consent page",
	TokenJudged:      "token judged",
	CodeIssued:       "code issued",
	Exchange:         "code exchanged",
	Stream:           "stream opened",
	Call:             "MCP call",
	Refresh:          "refresh",
	Ended:            "ended",
}

// Name returns the name of the step for people.
func (k Kind) Name() string { return names[k] }

const connectAgain = "The person has to connect again with a valid token: the old one has expired or was revoked, at " +
	"the site or at the MCP server " +
	"behind the gateway."

const tellMaker = "Only the maker of the client can fix this; report the rule to them."

const lostRegistration = "The client registered itself under a server secret that was forgotten, or while self-registration was on. "

const fetchAgain = "To fetch the documents of well-known clients as this service does, run pasteport doctor --egress " +
	"on this computer; for another client, " +
	"add its client_id. "

// hints are the remedies for a refusal, by its rule.
var hints = map[string]string{
	"A8": "The configuration allows only certain clients. To allow this one, add its host, or self-registered for " +
		"clients that registered themselves.",
	"A10": "The client must send its redirect_uri. " + tellMaker,
	"A12": "Compare the redirect_uri that the client sends with those in its published document or its registration; " +
		"only the port of a loopback address may differ. " + tellMaker,
	"A14": "If this is an installed app, allow its scheme with allowed-private-schemes.",
	"A25": "The client requests scopes that are not configured here: configure them, or remove them from the " +
		"client's settings.",
	"A30": "The URL in the client must equal the URL of a configured resource, except for a trailing slash.",
	"B4": "The page was open too long, or the server secret was replaced meanwhile. The person has to start again " +
		"in the client.",
	"B5": "This is no error: the person pressed \"Deny\".",
	"B6": "Too many wrong tokens came from this network or from all networks together. If the person has connected " +
		"since, nothing needs to be done. If all " +
		"people seem to have the same address, configure trusted-proxies. Otherwise list known networks in " +
		"unlimited-networks, or raise " +
		"max-wrong-tokens-per-address, max-wrong-tokens-per-network, max-wrong-tokens-per-prefix48 or max-wrong-tokens.",
	"B7": "The person pasted a text that is no token. Set token-help to a link to the page that shows the token.",
	"B8": "The site does not know the pasted token: it has expired, was revoked or belongs to another site. Set " +
		"token-help to a link to the page for a new one. If a gateway's reason says that the token was sent in " +
		"another way than the MCP server reads it, set present.",
	"B24": "The verifier cannot work as it is configured. The reason has the mistake; correct it, and the next " +
		"attempt works.",
	"B9": "The token could not be verified. Check whether the verifier answers, and read the log. The verifier " +
		"upstream of a gateway sends the token to the MCP " +
		"server, whose state is in /readyz and in pasteport doctor, with the remedy.",
	"B20": "Too many pasted tokens were being verified at once. Check how long the verifier takes, or raise " +
		"max-verifications.",
	"B10": "The pasted token does not allow the requested scopes. The site's verifier decides that.",
	"C1": "If the client has a setting for its client_id, set it to the https URL of a metadata document or leave " +
		"it empty. Otherwise: " + tellMaker,
	"C9": "The client's document must not be on the host of this service.",
	"C21": "Too many documents are being fetched, often because of an attack. An address that has reached its limit " +
		"may still fetch three a minute from " +
		"each domain. If all clients seem to have the same address, configure trusted-proxies. " +
		"Otherwise raise max-fetches, max-fetches-per-address, max-fetches-per-domain or the two " +
		"max-fetches-per-minute settings, or list " +
		"networks in unlimited-networks; the log names the limit that was reached.",
	"C41": fetchAgain + "Check its DNS, firewall and certificates. Addresses in private networks are refused.",
	"C42": fetchAgain + "The response must have status 200 and be JSON. Redirects are not followed. If the host " +
		"answers with a bot challenge, pin the " +
		"document with client-documents.",
	"C43": "The client's published document is not valid JSON. " + tellMaker,
	"C53": "The client's host has timed out three times in a row, so requests of the person's /24 or /48 network do " +
		"not try it for a while. " +
		fetchAgain + "The host must answer within 3 seconds.",
	"D6": tellMaker,
	"D22": "The code or token is not from this service, or was deleted after its expiry. Check whether the client " +
		"uses the right deployment, " +
		"and whether all replicas share a store and a server secret.",
	"D14": "The client took longer than auth-code-ttl, the lifetime of a code. Check the clocks too.",
	"D16": "The code was intercepted, or the client confused two attempts. " + tellMaker,
	"D19": "The client sent the same code twice. Within ten seconds that is a retry without effect. Later it ends " +
		"the connection for safety, and the person " +
		"has to connect again.",
	"D27": "A replaced refresh token was used after refresh-grace, so the connection was ended for safety. Two " +
		"programs may share the storage of one client.",
	"D31": "The network has sent more unknown codes and refresh tokens in a minute than " +
		"max-unknown-tokens-per-minute allows. Known ones still work. " +
		"If it has the address of your proxy, configure trusted-proxies. To exempt the network, list it in " +
		"unlimited-networks.",
	"D33": "The client must sign with a key that it publishes. Check its clock too, which may differ by at most 30 " +
		"seconds.",
	noRegistration: "Set self-registration: true, and the client can register itself and log in. Otherwise update " +
		"the client to one that has a Client ID Metadata " +
		"Document, or configure its client_id, if it allows that.",
	"F5": "The client looks for an OpenID provider. It should continue with /.well-known/oauth-authorization-server.",
	"L7": lostRegistration + "The person has to remove this server in the client and add it again.",
	"L8": lostRegistration + "The client should register again by itself. If it does not, the person has to remove " +
		"this server there and add it again.",
	"G1": "A web page calls the MCP endpoint from another origin or with another host name. If it is yours, allow it " +
		"with allowed-origins or allowed-hosts.",
	"G7": "The client's token is no longer valid. The client should refresh it, or ask the person to connect again.",
	"G8": "The client's token is for another MCP server. Each server needs its own.",
	"G19": "A message was longer than max-request-body, a batch had too many messages, or all messages together used " +
		"the memory for them. Raise " +
		"max-request-body, give the process more memory, or send smaller batches.",
	"G20": "One person had more MCP sessions than max-sessions-per-person allows, or all people together more than " +
		"max-sessions, so the idlest session " +
		"ended. Most clients open another one automatically. Raise the setting if people lose sessions that they use.",
	"U6": "The client's token was issued before the gateway forwarded host tokens. A refresh returns one that works.",
	"U8": connectAgain,
	"U9": "Check whether the MCP server behind the gateway runs at exactly the address of the upstream setting and " +
		"answers within upstream-timeout. If it " +
		"refuses the host name, set upstream-host to one that it allows. The log has the cause under the id of the " +
		"request; /readyz and pasteport doctor have the " +
		"present state of the server, with the remedy.",
	"U10": "The MCP server behind the gateway has failed five times in a row. It is tried again every five seconds. " +
		"The earlier steps and the log " +
		"have the cause.",
	"U11": "The MCP server behind the gateway could read the message in another way than the gateway, so the message " +
		"was not forwarded. " + tellMaker,
	"U16": "The MCP server behind the gateway has lost its sessions, as after a restart. Most clients open a new one " +
		"automatically. People need not connect again.",
	"U17": "The MCP server behind the gateway answered 401, although the verifier accepts the token. Check that " +
		"the server accepts the same tokens as the verifier, and read its log. The reason says how the key was " +
		"sent; if the server reads it from elsewhere, set present.",
	"U26": "The rules of tools, prompts or resources do not allow this person what the client asked for. Nothing is " +
		"wrong if the client asked by a name that " +
		"it was not shown. The audit has the name. A URI of a resource that programs read in different ways, such as " +
		"one with dot segments, is never allowed.",
	"U27": "The MCP server behind the gateway sent an answer that is longer than 16 MiB, compressed in another " +
		"way than gzip, or not valid JSON, so the rules of tools, prompts or resources could not be applied to " +
		"it. The log has the reason under the id of the request.",
	"U12": "The client uses the session of another person or client, or one from before the server secret was " +
		"replaced. Most clients open a new one automatically.",
}

// endReasonTexts describe to people why a grant ended.
var endReasonTexts = map[oauth.EndReason]string{
	oauth.EndedByCodeReplay: "its code was used a second time, so an attacker may have it.",
	oauth.EndedByReuse:      "a replaced refresh token was used again, so an attacker may have it.",
	oauth.EndedByRevocation: "the client revoked its tokens.",
	oauth.EndedByHostToken:  "the site does not know the person's token any more.",
	oauth.EndedByLostKey:    "the server secret of its host token no longer exists.",
	oauth.EndedByHost:       "the site ended the connections of this token.",
	oauth.EndedByPerson:     "the person ended it on the connections page.",
	oauth.EndedByOperator:   "the operator ended it.",
	oauth.EndedByLimit: "its token had more connections than max-grants-per-token allows, and this one had been " +
		"unused the longest.",
}

// needsProxy is advice for a service that has not reached any metadata host. Its operator may rely
// on HTTPS_PROXY.
const needsProxy = " No metadata host has answered so far. If outgoing requests need a proxy, set metadata-proxy, " +
	"because HTTPS_PROXY is not used for " +
	"metadata. If it is set, check whether the proxy is reachable and accepts this service."

// reachedMetadataHost reports whether a metadata host answered in this step, or earlier if the
// document was cached.
func (s Step) reachedMetadataHost() bool {
	return s.Kind == ClientMetadata &&
		(s.Outcome == Passed || s.Outcome == Refused && s.Rule != "C41" && s.Rule != "C53")
}

// endHints are the remedies for an unwanted end.
var endHints = map[oauth.EndReason]string{
	oauth.EndedByHostToken: connectAgain,
	oauth.EndedByLimit: "The person can end other connections on the connections page and then connect again. " +
		"Raise max-grants-per-token if people need more.",
}

// hintFor returns the advice for the rule of a step, or for its outcome.
func hintFor(step Step) string {
	for rule := range strings.SplitSeq(step.Rule, ", ") {
		if hint, found := hints[rule]; found {
			return hint
		}
	}
	switch {
	case step.Outcome == Failed:
		return "The log has the cause under request " + step.Request + "."
	case strings.HasPrefix(step.Rule, "A"), strings.HasPrefix(step.Rule, "C"), strings.HasPrefix(step.Rule, "D"),
		strings.HasPrefix(step.Rule, "L"):
		return tellMaker
	}
	return ""
}
