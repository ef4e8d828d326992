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

	It("fails for what is not one object in strict JSON", func() {
		for _, body := range []string{
			"", "null", `[{"a":1}]`, `"a"`, "<!doctype html>", `{"a":1`, "\ufeff{}", "{\"a\":\"\xff\"}", "{\"\xff\":1}",
			`{"a":"\ud800"}`, `{"a":1,"a":1}`, `{"a":1,"\u0061":1}`, `{"a":{"b":1,"b":2}}`, `{}{}`, `{} x`,
			`{/* hello */}`, `{"a":1,}`, nested(8), strings.Repeat(`{"a":`, 9) + "1" + strings.Repeat("}", 9),
			nested(2500),
		} {
			_, err := strictjson.Object([]byte(body))
			Expect(err).To(HaveOccurred(), body)
		}
	})

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
