package cimd

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/internal/strictjson"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Decoding a metadata document", Label("C22"), func() {
	nested := func(arrays int) string {
		return `{"a":` + strings.Repeat("[", arrays) + strings.Repeat("]", arrays) + `}`
	}

	It("distinguishes the case of member names", func() {
		Expect(strictjson.Object([]byte(`{"client_id":"a","CLIENT_ID":"b"}`))).
			To(Equal(map[string]any{"client_id": "a", "CLIENT_ID": "b"}))
	})

	It("reads objects, lists and white space", func() {
		Expect(strictjson.Object([]byte(" {\"a\":[\"b\",{\"c\":null}],\"d\":true}\r\n"))).To(Equal(
			map[string]any{"a": []any{"b", map[string]any{"c": nil}}, "d": true}))
	})

	It("leaves out members that are null", func() {
		Expect(strictjson.Object([]byte(`{"a":null,"b":1}`))).To(Equal(map[string]any{"b": 1.0}))
	})

	It("reads eight levels", func() {
		Expect(strictjson.Object([]byte(nested(7)))).To(HaveKey("a"))
	})

	DescribeTable("fails",
		func(body string) {
			_, err := strictjson.Object([]byte(body))
			Expect(err).To(HaveOccurred())
		},
		Entry("when the document is empty", ""),
		Entry("when the document is null", "null"),
		Entry("when the document is a list", `[{"a":1}]`),
		Entry("when the document is a string", `"a"`),
		Entry("when the document is a web page", "<!doctype html>"),
		Entry("when the document is incomplete", `{"a":1`),
		Entry("when a byte order mark comes first", "\ufeff{}"),
		Entry("when a string is not UTF-8", "{\"a\":\"\xff\"}"),
		Entry("when a member name is not UTF-8", "{\"\xff\":1}"),
		Entry("when a string has half a surrogate pair", `{"a":"\ud800"}`),
		Entry("when a member appears twice", `{"a":1,"a":1}`),
		Entry("when a member appears twice, once escaped", `{"a":1,"\u0061":1}`),
		Entry("when an inner member appears twice", `{"a":{"b":1,"b":2}}`),
		Entry("when another object follows", `{}{}`),
		Entry("when data follows", `{} x`),
		Entry("when it has a comment", `{/* hello */}`),
		Entry("when it has a trailing comma", `{"a":1,}`),
		Entry("when lists nest nine levels deep", nested(8)),
		Entry("when objects nest nine levels deep", strings.Repeat(`{"a":`, 9)+"1"+strings.Repeat("}", 9)),
		Entry("when it nests thousands of levels deep", nested(2500)),
	)

	It("distinguishes an unreadable document from an unreachable one", func(ctx SpecContext) {
		client := newSite()
		client.respond(http.StatusOK, `{"client_id":"a","client_id":"b"}`)
		directory := openDirectory(Config{Now: newClock().now, RootCAs: client.roots(), AllowLoopback: true},
			patient())
		_, err := directory.Client(ctx, client.client("/client.json"), "")
		Expect(err).To(MatchError(oauth.ErrMetadataMalformed))
		Expect(err).NotTo(MatchError(oauth.ErrMetadataUnreachable))
	})
})
