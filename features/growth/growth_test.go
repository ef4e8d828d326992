// Package growth reads inputs that grow while they are read, and counts what that allocates: at
// most a constant times their length.
package growth_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/filter"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/domain/access"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestGrowth(t *testing.T) {
	suite.Run(t, "Inputs that grow")
}

const (
	perByte = 128       // bytes that may be allocated for each byte of an input
	fixed   = 256 << 10 // for tables that are filled once

	long = 256 << 10 // bytes of a body
	line = 8 << 10   // of a URI or a header
	wide = "\ufdfa"  // 11 times as long in NFKC
)

// repeat returns a text of about n bytes.
func repeat(text string, n int) string { return strings.Repeat(text, n/len(text)) }

// numbered returns the text with a different number in place of each %d.
func numbered(format string, n int) string {
	var text strings.Builder
	for i := 0; text.Len() < n; i++ {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}

func parse(fold func(string) (string, bool), lines ...string) access.Rules {
	rules, mistakes := access.Parse(lines, access.Vocabulary{Fold: fold})
	if len(mistakes) > 0 {
		panic(mistakes[0])
	}
	return rules
}

var (
	names = parse(access.FoldName, "deny delete_*", "deny *a*b*c*d*e", "allow *")
	uris  = parse(access.FoldURI, "deny file:///secret/*", "deny *a*b*c*d*e", "allow *")
)

// body is read as by a gateway with rules and an audit.
type body string

func (b body) read() {
	m, err := message.Read(http.Header{"Content-Type": {"application/json"}}, []byte(b))
	if err != nil {
		_ = message.Refuse(err, []byte(b))
		return
	}
	for _, name := range append(m.Names.Tools, m.Names.Prompts...) {
		names.Permit(oauth.Caller{}, name)
	}
	for _, name := range m.Names.Resources {
		uris.Permit(oauth.Caller{}, name)
	}
	_ = message.RefuseNames(m, "U26", 1, "unknown")
	m.Requests()
	m.Encode()
}

func request(method, params string) body {
	return body(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `}}`)
}

func subscription(more string) body {
	return request("subscriptions/listen", `"notifications":{"resourceSubscriptions":["a"`+more+`]}`)
}

// batch repeats a message.
func batch(message body, count int) body {
	return "[" + body(strings.Repeat(string(message)+",", count)) + "1]"
}

// answer is read as by a gateway with rules.
type answer string

func (a answer) read() {
	permits := func(rules access.Rules) func(string) bool {
		return func(name string) bool { return rules.Permit(oauth.Caller{}, name) }
	}
	_, _ = filter.Lists{Tools: permits(names), Prompts: permits(names), Resources: permits(uris)}.Filter([]byte(a))
}

// resource is the URI of a resource.
type resource string

func (r resource) read() { uris.Permit(oauth.Caller{}, string(r)) }

// nameHeader and methodHeader are headers that repeat the body.
type nameHeader string

func (h nameHeader) read() { readHeaders("tools/call", string(h)) }

type methodHeader string

func (h methodHeader) read() { readHeaders(string(h), "a") }

func readHeaders(method, name string) {
	header := http.Header{"Content-Type": {"application/json"}, "Mcp-Method": {method}, "Mcp-Name": {name}}
	m, err := message.Read(header, []byte(request("tools/call", `"name":"a"`)))
	for _, name := range m.Names.Tools {
		names.Permit(oauth.Caller{}, name)
	}
	if err != nil {
		_ = message.Refuse(err, nil)
	}
}

// failure is the text of a verifier's error, from which a key is removed before it is logged.
type failure struct{ text, key string }

func (f failure) String() string { return f.text + f.key }

func (f failure) read() {
	credential.Fields(nil).Redact(f.text, credential.Values{credential.Token: f.key})
}

// input is what is read; its length is that of its text.
type input interface{ read() }

// allocated returns the bytes that reading an input allocates.
func allocated(in input) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	in.read()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

var _ = Describe("Reading", Label("G19"), Serial, func() {
	DescribeTable("allocates a constant times the length of", func(in input) {
		length := len(fmt.Sprint(in))
		Expect(allocated(in)).To(BeNumerically("<", raceFactor*perByte*length+fixed), "for %d bytes", length)
	},
		Entry("a tool", request("tools/call", `"name":"`+repeat(wide, long)+`"`)),
		Entry("a tool in escapes", request("tools/call", `"name":"`+repeat(`\ufdfa`, long)+`"`)),
		Entry("a tool of a batch", "["+request("tools/call", `"name":"`+repeat(wide, long)+`"`)+"]"),
		Entry("a tool that is just short enough, in a batch",
			batch(request("tools/call", `"name":"`+repeat(wide, 90)+`"`), 99)),
		Entry("a prompt", request("prompts/get", `"name":"`+repeat(wide, long)+`"`)),
		Entry("a prompt of a completion", request("completion/complete", `"ref":{"name":"`+repeat(wide, long)+`"}`)),
		Entry("a method", request(repeat(wide, long), "")),
		Entry("a method in full-width letters", request(repeat("\uff54", long), "")),
		Entry("the URI of a resource", request("resources/read", `"uri":"`+repeat(wide, long)+`"`)),
		Entry("the URI of a resource in percent-encoding",
			request("resources/read", `"uri":"`+repeat("%EF%B7%BA", long)+`"`)),
		Entry("the template of a completion", request("completion/complete", `"ref":{"uri":"`+repeat(wide, long)+`"}`)),
		Entry("many resources of a subscription", subscription(repeat(`,"a"`, long))),
		Entry("long resources of a subscription",
			subscription(strings.Repeat(`,"file:///`+repeat(wide, line/2)+`"`, 60))),
		Entry("a member name", request("a", `"`+repeat(wide, long)+`":1`)),
		Entry("a member name of a reference", request("completion/complete", `"ref":{"`+repeat(wide, long)+`":1}`)),
		Entry("a member name of a message", body(`{"`+repeat(wide, long)+`":1}`)),
		Entry("a member name of hyphens", request("a", `"`+repeat("-", long)+`":1`)),
		Entry("a member name of wide hyphens", request("a", `"`+repeat("\uff0d", long)+`":1`)),
		Entry("a member name of invisible characters", request("a", `"`+repeat("\u200b", long)+`":1`)),
		Entry("many member names", request("a", numbered(`"`+wide+`%d":1,`, long)+`"a":1`)),
		Entry("an id", body(`{"jsonrpc":"2.0","id":"`+repeat("<", long)+`","method":"ping"}`)),
		Entry("ids of a batch",
			batch(body(`{"jsonrpc":"2.0","id":"`+repeat("<", long/50)+`","method":"ping"}`), 50)),
		Entry("half surrogate pairs", request("a", `"a":"`+repeat(`\ud800`, long)+`"`)),
		Entry("nested lists", request("a", `"a":`+repeat("[", long))),
		Entry("nested objects", request("a", `"a":`+repeat(`{"a":`, long))),
		Entry("numbers that are longer in canonical form",
			request("tools/call", `"name":"a","arguments":[1`+repeat(",1e20", long)+`]`)),
		Entry("arguments to sort",
			request("tools/call", `"name":"a","arguments":{`+numbered(`"%d":1,`, long)+`"a":1}`)),
		Entry("arguments in escapes", request("tools/call", `"name":"a","arguments":["`+repeat(`\u0001`, long)+`"]`)),
		Entry("a name header", nameHeader(repeat(wide, line))),
		Entry("a name header in base64", nameHeader("=?base64?"+repeat("77e6", line)+"?=")),
		Entry("a method header", methodHeader(repeat(wide, line))),
		Entry("a tool in a list", answer(`{"result":{"tools":[{"name":"`+repeat(wide, long)+`"}]}}`)),
		Entry("tools in a list", answer(`{"result":{"tools":[{"name":"a"}`+repeat(`,{"name":"`+wide+`"}`, long)+`]}}`)),
		Entry("resources in a list",
			answer(`{"result":{"resources":[{"uri":"a"}`+
				strings.Repeat(`,{"uri":"file:///`+repeat(wide, line/2)+`"}`, 50)+`]}}`)),
		Entry("a member name of a result", answer(`{"result":{"`+repeat(wide, long)+`":1}}`)),
		Entry("a member name of a tool", answer(`{"result":{"tools":[{"`+repeat(wide, long)+`":1}]}}`)),
		Entry("the method of a notification", answer(`{"method":"`+repeat(wide, long)+`","params":{"uri":"a"}}`)),
		Entry("a URI", resource("file:///"+repeat(wide, line-8))),
		Entry("a URI in percent-encoding", resource("file:///"+repeat("%EF%B7%BA", line-8))),
		Entry("a URI of parameters", resource("file:///"+repeat(";a/", line-8))),
		Entry("a URI of slashes", resource("file:"+repeat("/", line-8))),
		Entry("a URI of dots", resource("file:///"+repeat(". ./;", line-8))),
		Entry("a URI of queries", resource("note://"+repeat("?#", line-8))),
		Entry("a URI with a host", resource("http://"+repeat("a.", line-8))),
		Entry("a URI with a user", resource("http://"+repeat("a:", line-8)+"@h/")),
		Entry("an error with base64", failure{repeat("QUJD", 64<<10), "sk-live-0123456789"}),
		Entry("an error that nearly repeats a long key", failure{repeat("a", 64<<10), repeat("a", 4<<10) + "b"}),
		Entry("an error that repeats a key often", failure{repeat("a", 64<<10), repeat("a", 4<<10)}),
		Entry("a URI of stars", resource("file:///"+repeat("abcd", line-8))),
	)
})
