package uri

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestURI(t *testing.T) { suite.Run(t, "The text of URIs") }

var _ = Describe("Loopback origins of web pages", Label("G1"), func() {
	It("are allowed", func() {
		for _, origin := range []string{
			"http://localhost", "http://localhost:6274", "https://127.0.0.1:65535", "http://[::1]:1",
			"https://[::1]",
		} {
			Expect(IsLoopbackOrigin(origin)).To(BeTrue(), origin)
		}
	})
	It("are not other texts", func() {
		for _, origin := range []string{
			"", "null", "loopback", "localhost", "localhost:6274", "//localhost", "ftp://localhost",
			"ws://localhost", "file://localhost", "chrome-extension://localhost", "http:localhost",
			"http://localhost/", "http://localhost:6274/x", "http://localhost?x", "http://localhost#x",
			"http://localhost:", "http://localhost:0", "http://localhost:65536", "http://localhost:8x",
			"http://localhost:80:80", "http://evil@localhost", "http://localhost@evil.example",
			"http://localhost:80@evil.example", "http://localhost.evil.example",
			"http://evil.example/http://localhost", "http://evil.example://localhost", "http://127.0.0.1.nip.io",
			"http://127.0.0.2", "http://127.1", "http://0.0.0.0", "http://[::ffff:127.0.0.1]", "http://::1",
			"http://localhost.", "http://foo.localhost", " http://localhost", "http://localhost http://evil.example",
		} {
			Expect(IsLoopbackOrigin(origin)).To(BeFalse(), origin)
		}
	})
})
