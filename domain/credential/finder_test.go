package credential

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// key has characters that some encoders leave as they are and others do not.
const key = `sk-Live_07!~ /+=&<"\é`

var _ = Describe("Finding a secret", Label("J17", "U23"), func() {
	redact := func(text string) string {
		GinkgoHelper()
		redacted, ok := Fields(nil).Redact(text, Values{Token: key})
		Expect(ok).To(BeTrue())
		return redacted
	}

	quoted, _ := json.Marshal(key)
	DescribeTable("finds and replaces it", func(encoded string) {
		finder := NewFinder("another secret", key)
		for _, around := range [][2]string{{"", ""}, {`{"key":"`, `"}`}, {"/a?key=", "&b=%41"}, {"100%", " \\é"}} {
			text := around[0] + encoded + around[1]
			Expect(finder.Finds(text)).To(BeTrue(), text)
			Expect(redact(text)).To(Equal(around[0]+"[redacted]"+around[1]), text)
		}
		Expect(finder.Finds(encoded[:len(encoded)/2])).To(BeFalse())
	},
		Entry("as it is", key),
		Entry("in capitals", strings.ReplaceAll(strings.ToUpper(key), "É", "é")),
		Entry("in a query", url.QueryEscape(key)),
		Entry("in a query of a browser", "sk-Live_07%21~%20%2f%2b%3d%26%3c%22%5c%c3%a9"),
		Entry("in a path", url.PathEscape(key)),
		Entry("in JSON of Go", string(quoted[1:len(quoted)-1])),
		Entry("in JSON of JavaScript", `sk-Live_07!~ /+=&<\"\\é`),
		Entry("in JSON of Python", `sk-Live_07!~ /+=&<\"\\\u00e9`),
		Entry("in hexadecimal", hex.EncodeToString([]byte(key))),
		Entry("in hexadecimal of more, in capitals", strings.ToUpper(hex.EncodeToString([]byte("ann:"+key+":x")))),
		Entry("in base64", base64.StdEncoding.EncodeToString([]byte(key))),
		Entry("in base64 for URLs after one byte", base64.URLEncoding.EncodeToString([]byte(":"+key+"~"))),
		Entry("in base64 after two bytes", base64.RawStdEncoding.EncodeToString([]byte("a:"+key+"~b"))),
	)

	It("replaces the longer of two secrets, and each occurrence", func() {
		fields := Fields{{Name: "key", Secret: true}, {Name: "pin", Secret: true}}
		redacted, _ := fields.Redact("a1234567890b 12345678", Values{"key": "12345678", "pin": "1234567890"})
		Expect(redacted).To(Equal("a[redacted]b [redacted]"))
	})
})
