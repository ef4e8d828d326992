package features_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
)

// attempt is a raw request, which may be invalid in any part.
type attempt struct {
	method, path string
	query, form  []pair // already encoded
	headers      []pair
	body         string // used if there is no form
	cutShort     bool   // the body is shorter than Content-Length
}

type pair struct{ name, value string }

func (a attempt) wire() string {
	target, body := a.path, a.body
	if len(a.query) > 0 {
		target += "?" + encoded(a.query)
	}
	if len(a.form) > 0 {
		body = encoded(a.form)
	}
	length := len(body)
	if a.cutShort {
		length += 7
	}
	text := a.method + " " + target + " HTTP/1.1\r\n"
	for _, header := range a.headers {
		text += header.name + ": " + header.value + "\r\n"
	}
	return text + fmt.Sprintf("Content-Length: %d\r\nConnection: close\r\n\r\n", length) + body
}

func encoded(pairs []pair) string {
	var parts []string
	for _, p := range pairs {
		parts = append(parts, p.name+"="+p.value)
	}
	return strings.Join(parts, "&")
}

func pairsOf(values url.Values) (pairs []pair) {
	for _, part := range strings.Split(values.Encode(), "&") {
		name, value, _ := strings.Cut(part, "=")
		pairs = append(pairs, pair{name, value})
	}
	return pairs
}

// attempt returns a valid request with one to three errors.
func (s *scanner) attempt() attempt {
	a := one(s.chance, s.wellSpoken())
	a.headers = append([]pair{{"Host", strings.TrimPrefix(s.Issuer, "http://")}}, a.headers...)
	for range 1 + s.chance.IntN(3) {
		one(s.chance, spoilers)(s.chance, &a)
	}
	a.query = s.withoutOtherClients(a.query)
	return a
}

// withoutOtherClients removes other client_ids: an unreachable client site correctly returns 502,
// and fetches are limited.
func (s *scanner) withoutOtherClients(query []pair) []pair {
	for i, p := range query {
		if p.name == "client_id" && p.value != url.QueryEscape(s.client.ID) {
			query[i].value += "%23"
		}
	}
	return query
}

func (s *scanner) wellSpoken() []attempt {
	bearer := pair{"Authorization", "Bearer " + s.access}
	messages := []pair{{"Content-Type", "application/json"}, {"Accept", "application/json, text/event-stream"}}
	modern := append(slices.Clone(messages), pair{"MCP-Protocol-Version", stateless}, pair{"Mcp-Method", "tools/list"})
	get := func(path string, headers ...pair) attempt {
		return attempt{method: "GET", path: path, headers: headers}
	}
	submit := func(path string, fields url.Values, headers ...pair) attempt {
		headers = append(headers, pair{"Content-Type", "application/x-www-form-urlencoded"})
		return attempt{
			method:  "POST",
			path:    path,
			form:    pairsOf(fields),
			headers: headers,
		}
	}
	say := func(path, body string, headers []pair, more ...pair) attempt {
		return attempt{
			method:  "POST",
			path:    path,
			body:    body,
			headers: slices.Concat(headers, more),
		}
	}
	decide := func(decision string) url.Values {
		return url.Values{"decision": {decision}, "ticket": {s.ticket}, "bearer_token": {s.Token}}
	}
	request := attempt{method: "GET", path: "/oauth/authorize", query: pairsOf(s.client.Request())}
	elsewhere := say("/mcp/message", listTools, messages, bearer)
	elsewhere.query = []pair{{"sessionid", "unknown"}}
	return []attempt{
		request, request,
		submit("/oauth/authorize", decide("approve")),
		submit("/oauth/authorize", decide("deny"), pair{"Origin", s.Issuer}),
		get("/oauth/connections"),
		submit("/oauth/connections", url.Values{"decision": {"show"}, "bearer_token": {s.Token}}),
		submit("/oauth/connections", url.Values{"decision": {"end"}, "ticket": {s.ticket}, "grant": {marker}}),
		submit("/oauth/token", s.client.Exchange(s.code)),
		submit("/oauth/token", s.client.Refresh(s.refreshable.Refresh)),
		submit("/oauth/revoke", url.Values{"token": {s.revocable.Access}, "client_id": {s.client.ID}}),
		get(one(s.chance, []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration",
			"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"})),
		say("/mcp", listTools, modern, bearer),
		say("/mcp", listTools, modern),
		say("/mcp", strings.Replace(listTools, `{"_meta"`,
			`{"name":"create_article","arguments":{"title":"t","body":"b"},"_meta"`, 1), modern, bearer),
		say("/mcp", initializing, messages, bearer),
		get("/mcp", pair{"Accept", "text/event-stream"}, bearer),
		{method: "DELETE", path: "/mcp", headers: []pair{{"Mcp-Session-Id", "unknown"}, bearer}},
		elsewhere,
		say("/mcp/message", listTools, messages),
		get(one(s.chance, []string{"/", "/oauth/register", "/oauth/authorize/", "//evil.example/oauth/authorize",
			"/oauth/../mcp", "/%2e%2e/%00", "/mcp/%2f", "/" + url.PathEscape(marker), "http://evil.example/mcp"})),
	}
}

const initializing = `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{` +
	`"protocolVersion":"2025-11-25","capabilities":{},` +
	`"clientInfo":{"name":"scanner","version":"1"}}}`

func one[T any](chance *rand.Rand, from []T) T { return from[chance.IntN(len(from))] }

// some returns the list of pairs to change: parameters if there are any, or headers.
func some(chance *rand.Rand, a *attempt) *[]pair {
	lists := slices.DeleteFunc([]*[]pair{&a.query, &a.form, &a.form, &a.headers}, func(l *[]pair) bool {
		return len(*l) == 0
	})
	if len(lists) == 0 {
		return &a.query
	}
	return one(chance, lists)
}

// change applies to a random pair, if there is one.
func change(chance *rand.Rand, a *attempt, apply func(*pair)) {
	if list := *some(chance, a); len(list) > 0 {
		apply(&list[chance.IntN(len(list))])
	}
}

// The odd headers are chosen more often, because there are many.
func odd(chance *rand.Rand, a *attempt) {
	a.headers = append(slices.Clone(a.headers), one(chance, oddHeaders))
}

var spoilers = []func(*rand.Rand, *attempt){
	func(chance *rand.Rand, a *attempt) { // missing
		if list := some(chance, a); len(*list) > 0 {
			at := chance.IntN(len(*list))
			*list = slices.Delete(slices.Clone(*list), at, at+1)
		}
	},
	func(chance *rand.Rand, a *attempt) { // doubled
		if list := some(chance, a); len(*list) > 0 {
			*list = append(slices.Clone(*list), one(chance, *list))
		}
	},
	func(chance *rand.Rand, a *attempt) { change(chance, a, func(p *pair) { p.value = "" }) },
	func(chance *rand.Rand, a *attempt) { // huge
		change(chance, a, func(p *pair) { p.value += strings.Repeat("A", one(chance, []int{2100, 9000, 17_000})) })
	},
	func(chance *rand.Rand, a *attempt) {
		change(chance, a, func(p *pair) { p.value = one(chance, misEncoded) })
	},
	func(chance *rand.Rand, a *attempt) {
		change(chance, a, func(p *pair) { p.value += one(chance, misEncoded) })
	},
	func(chance *rand.Rand, a *attempt) {
		change(chance, a, func(p *pair) { p.value = url.QueryEscape(marker) })
	},
	func(chance *rand.Rand, a *attempt) {
		change(chance, a, func(p *pair) { p.value += url.QueryEscape(marker) })
	},
	func(chance *rand.Rand, a *attempt) {
		change(chance, a, func(p *pair) { p.value = one(chance, targets) })
	},
	func(chance *rand.Rand, a *attempt) {
		change(chance, a, func(p *pair) { p.name += one(chance, []string{"[]", "%00", "+", "zqx9"}) })
	},
	func(chance *rand.Rand, a *attempt) {
		for i := range a.query {
			if a.query[i].name == "redirect_uri" {
				a.query[i].value = one(chance, targets)
			}
		}
	},
	func(chance *rand.Rand, a *attempt) { a.method = one(chance, methods) },
	odd, odd, odd,
	func(chance *rand.Rand, a *attempt) { // the wrong place
		a.query, a.form = slices.Concat(a.query, a.form), nil
	},
	func(chance *rand.Rand, a *attempt) { // the wrong type
		a.form, a.body = nil, one(chance, oddBodies)
	},
	func(chance *rand.Rand, a *attempt) {
		a.body = strings.Replace(a.body, one(chance, members), one(chance, oddMembers), 1)
	},
	func(chance *rand.Rand, a *attempt) { // garbled
		if at := chance.IntN(len(a.body) + 1); at < len(a.body) {
			a.body = a.body[:at] + one(chance, []string{"", "\x00", "\xff", `"`, "{", "\u202e", marker}) + a.body[at+1:]
		}
	},
	func(chance *rand.Rand, a *attempt) { a.cutShort = true },
}

var (
	misEncoded = []string{"%", "%zz", "%f", "%ff%fe", "%c0%ae", "%00", "%0d%0aX-Injected:+zqx9",
		"%0aX-Injected:%20zqx9", "\xff", ";x=1", "%u0041", "%252f", "+", "&", "=", "%E2%80%AE"}
	targets = []string{"https%3A%2F%2Fevil.example%2Fcallback", "%2F%2Fevil.example%2Fcallback",
		"javascript%3Aalert(1)", "http%3A%2F%2F127.0.0.1%40evil.example%2Fcallback",
		"http%3A%2F%2F127.0.0.1.evil.example%2Fcallback", "https%3A%2F%2Fclient.example.evil.example%2Fcallback",
		"http%3A%2F%2F127.0.0.1%3A1%2Fcallback%3F" + url.QueryEscape(marker),
		"https%3A%2F%2Fclient.example%2Fcallback", "http%3A%2F%2F127.0.0.1%3A1%2Fcallback%0d%0aX-Injected%3A+zqx9"}
	methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND",
		"REPORT", "QUERY", "get", "ZQX9"}
	oddHeaders = []pair{
		{"Authorization", "Basic " + marker}, {"Authorization", "Basic dXNlcjpwYXNz"},
		{"Authorization", "Bearer " + marker}, {"Authorization", "Bearer"},
		{"Authorization", "Bearer " + strings.Repeat("A", 9000)},
		{"Content-Type", "application/json"}, {"Content-Type", "multipart/form-data; boundary=" + marker},
		{"Content-Type", "text/plain; charset=utf-7"}, {"Content-Encoding", "gzip"},
		{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", marker}, {"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", marker}, {"X-Forwarded-Host", "evil.example"}, {"X-Forwarded-For", marker},
		{"Host", "evil.example"}, {"X-HTTP-Method-Override", "DELETE"}, {"Accept", "text/html"},
		{"Accept", "text/event-stream"}, {"Accept", marker}, {"Referer", "https://evil.example/" + marker},
		{"MCP-Protocol-Version", marker}, {"MCP-Protocol-Version", "2099-01-01"}, {"Mcp-Session-Id", marker},
		{"Mcp-Method", marker}, {"Mcp-Name", "=?base64?" + marker + "?="}, {"Last-Event-ID", marker},
		{"If-None-Match", marker}, {"Range", "bytes=0-1"}, {"Expect", "100-continue"}, {"Cookie", marker},
		{"X-Odd", strings.Repeat("B", 20_000)}, {"Bad Name", "x"}, {"Content-Length", "-1"},
		{"Access-Control-Request-Headers", "authorization"}, {"Access-Control-Request-Method", marker},
	}
	oddBodies = []string{"", "null", "[]", "[[]]", "7", `"zqx9"`, "{", "\ufeff{}", "\x00", strings.Repeat("[", 20_000),
		`{"grant_type":"authorization_code"}`, "<?xml version='1.0'?><zqx9/>",
		"--x\r\nContent-Disposition: form-data; name=\"code\"\r\n\r\nzqx9\r\n--x--", "a=1;b=2", "%",
		strings.Repeat("a&", 8000), strings.Repeat("A", 17_000), "[" + listTools + "," + listTools + "]"}
	members = []string{`"2.0"`, `"id":1`, `"tools/list"`, `"params":{`, `"2026-07-28"`, `"create_article"`,
		`"initialize"`, `{"name":"spec","version":"1"}`, `"title":"t"`}
	oddMembers = []string{"null", "7", "[]", "{}", `""`, `"id":null`, `"id":{}`, `"id":1e999`, `"id":1,"id":2`,
		`"method":"x"`, `"zqx9<zqx9>"`, `"\ud800"`, `"resources/read"`, `"tools/call"`, `"params":[`,
		strings.Repeat("9", 400)}
)
