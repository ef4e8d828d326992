package uri

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Reading the URI of a resource", Label("U26"), func() {
	DescribeTable("finds what servers may take it for:", func(uri string, readings ...string) {
		found := Readings(uri)
		slices.Sort(found)
		Expect(slices.Compact(found)).To(Equal(readings))
	},
		Entry("a file", "file:///A/b", "file:///a/b"),
		Entry("a file without slashes", "file:a/b", "file:///a/b"),
		Entry("a file with one slash", "FILE:/a/b", "file:///a/b"),
		Entry("a file with more slashes", "file:////a//b", "file:///a/b"),
		Entry("a file of localhost", "file://localhost/a", "file:///a", "file:///localhost/a"),
		Entry("a file of an address", "file://127.0.0.1/a", "file:///127.0.0.1/a", "file:///a"),
		Entry("a file whose host may be a folder", "file://docs/{name}", "file:///docs/{name}", "file:///{name}"),
		Entry("a query and a fragment", "file:///a?b#c", "file:///a", "file:///a?b#c"),
		Entry("an encoded query", "file:///a%3fb?c", "file:///a", "file:///a?b", "file:///a?b?c"),
		Entry("an encoded fragment", "file:///c%23.md", "file:///c", "file:///c#.md"),
		Entry("parameters", "file:///a;b/c;d?e", "file:///a/c", "file:///a;b/c;d", "file:///a;b/c;d?e"),
		Entry("percent-encoding", "file:///a%20b/%C3%A9%25", "file:///a b/\u00e9%"),
		Entry("wide letters", "file:///\uff53ecret\uff1fx", "file:///secret", "file:///secret?x"),
		Entry("a web page", "HTTPS://H.example/a", "https://h.example/a"),
		Entry("a web page without a path", "https://h?a", "https://h/", "https://h/?a"),
		Entry("a port", "https://h:8443/a", "https://h:8443/a"),
		Entry("a note", "note://A/b//c", "note://a/b/c"),
		Entry("a note with one slash", "note:/a", "note:///a"),
		Entry("a memo", "memo:x", "memo:x"),
		Entry("a database", "postgres://me@db:5432/{table}", "postgres://me@db:5432/{table}"),
		Entry("a template", "note:///{+path}{?q}", "note:///{+path}{", "note:///{+path}{?q}"),
		Entry("a name without a scheme", "Readme", "readme"),
		Entry("a scheme that begins like a stream of PHP", "phpdoc://a", "phpdoc://a"),
		Entry("a scheme with a plus", "git+ssh://h/a", "git+ssh://h/a"),
		Entry("a hidden file", "file:///.git/...x", "file:///.git/...x"),
		Entry("nothing", "", ""),
	)

	DescribeTable("finds nothing if parsers differ:", func(uris ...string) {
		for _, uri := range uris {
			Expect(Readings(uri)).To(BeEmpty(), uri)
		}
	},
		Entry("a web page without two slashes", "https:h/a", "https:/h/a", "https:///h/a", "HTTP:h"),
		Entry("white space and control characters", "file:///a b", " file:///a", "file:///a\t", "file:///a\n",
			"file:///a\x00", "file:///a\u00a0b", "file:///a\x7f"),
		Entry("encoded control characters", "file:///a%00", "file:///a%0ab", "file:///a%C2%85"),
		Entry("backslashes", `file:///a\b`, `http:\\h\a`, "file:///a%5cb", "file:///a\uff3cb"),
		Entry("other characters that no URI has", "file:///c|/x", "<file:///a>", `"file:///a"`),
		Entry("invalid percent-encoding", "file:///a%", "file:///a?%zz", "file:///a#%1", "file:///%u002e/a",
			"file:///%ff", "file:///%c0%ae/"),
		Entry("repeated percent-encoding", "file:///%2561", "file:///%25%36%31", "file:///%25u0061",
			"file:///\uff0561"),
		Entry("dot segments", "file:///a/../b", "file:///./a", "file:///a/..", "file:..", "file:///a/..?b",
			"https://h/a?/../b", "https://h/a#/./b", "../a", "note://a/../b"),
		Entry("encoded dot segments", "file:///%2e%2e/b", "file:///a/%2E./b", "file:///a%2f..%2fb",
			"file:///\uff0e\uff0e/b", "file:///\u2025/b"),
		Entry("dot segments with parameters, space or more dots", "file:///a/..;x/b", "file:///a/..%20/b",
			"file:///a/.../b"),
		Entry("prefixes that clients strip", "url:file:///secret/key", "URL:file:///a", "Url:https://h/a",
			"url:url:file:///a", "url%3Afile:///a", "url:/a", "\uff35RL:file:///a"),
		Entry("other names of file:", "netdoc:///a", "NetDoc:/a", "local_file:///a", "local-file:///a"),
		Entry("URIs in a URI", "jar:file:///a.jar!/b", "view-source:http://h/a", "feed:https://h/a",
			"compress.zlib://file:///a", "a:b:file:///c", ":file:///a", "a::file:///b", "::https://h/a",
			"git+file:///a",
			"GIT+FILE:/a", "git%2Bfile:///a", "git+https://h/a"),
		Entry("streams of PHP", "compress.zlib:///a", "compress.bzip2:///a", "php://filter/resource=/a",
			"PHP://filter/resource=/a",
			"phar:///a", "zip:///a", "rar:///a", "glob:///a", "php%3A//filter/resource=/a"),
		Entry("other authorities of files", "file://user@/a", "file://c:/a", "file://h:80/a", "file://[::1]/a",
			"file://%61/a"),
		Entry("other authorities", "https://user@h/a", "https://h:443/a", "http://h:80/a", "https://h:/a",
			"https://h./a", "https://[::1]/a", "https://%68/a", "https://\u212a/a", "http://127.1/a",
			"http://0x7f.0.0.1/a", "http://2130706433/a", "http://127.0.0.01/a", "https:", "https:///",
			"https://h\u00ad/a"),
	)
})

var _ = Describe("Reading the pattern of a rule", Label("U26"), func() {
	DescribeTable("finds its forms:", func(pattern string, complete, shortened string) {
		full, short := Forms(pattern)
		Expect([]string{strings.Join(full, " "), strings.Join(short, " ")}).To(Equal([]string{complete, shortened}))
	},
		Entry("for everything", "*", "*", "*"),
		Entry("for a page without slashes", "https:h/*", "https://h/*", "https://h/*"),
		Entry("for a part", "*Pay*", "*pay*", "*pay*"),
		Entry("for a folder", "file:///A/*", "file:///a/*", "file:///a/*"),
		Entry("for a folder of localhost", "file://localhost/a/*", "file:///localhost/a/* file:///a/*",
			"file:///localhost/a/* file:///a/*"),
		Entry("for every file", "file:*", "file:///*", "file:///*"),
		Entry("for a page", "https://h", "https://h/", "https://h/"),
		Entry("for hosts", "https://h*", "https://h*", "https://h*"),
		Entry("for any character", "file:///a?", "file:///a?", "file:///a?"),
		Entry("for a query", `https://h/a\?q=*`, `https://h/a\?q=*`, "https://h/a"),
		Entry("for a template with a query", "note:///a{?q}", "note:///a{?q}", "note:///a{"),
		Entry("for a fragment", "file:///a#b", "file:///a#b", "file:///a"),
		Entry("for a parameter", "file:///a;v=1/b", "file:///a;v=1/b", "file:///a/b"),
		Entry("with percent-encoding", "file:///a%20b", "file:///a b", "file:///a b"),
		Entry("for hidden files", "file:///.?*", "file:///.?*", "file:///.?*"),
	)

	DescribeTable("refuses what no reading matches:", func(pattern string) {
		complete, _ := Forms(pattern)
		Expect(complete).To(BeEmpty())
	},
		Entry("dot segments", "file:///a/../b"), Entry("encoded dot segments", "file:///a/%2e%2e/b"),
		Entry("invalid percent-encoding", "file:///100%"),
		Entry("repeated percent-encoding", "file:///a%2520b"), Entry("a prefix that clients strip", "url:file:///a/*"),
		Entry("a URI in a URI", "jar:file:*"),
	)
})
