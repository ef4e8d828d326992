package sdkserver

import (
	"errors"
	"net/http"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
)

// losable are server secrets that can become unreadable.
type losable struct{ lost atomic.Bool }

func (l *losable) Secrets() ([][]byte, error) {
	if l.lost.Load() {
		return nil, errors.New("the disk is gone")
	}
	return [][]byte{make([]byte, 32)}, nil
}

var _ = Describe("Binding sessions", Label("R2", "G14"), func() {
	It("answers 503 while no session id can be bound or opened", Label("G11"), func(ctx SpecContext) {
		secrets := new(losable)
		s := openSite(func(o *Options) { o.Sessions = seal.NewKeyRing(secrets) })
		session := s.session(ctx, alice)
		secrets.lost.Store(true)
		for _, answer := range []answer{
			s.send(ctx, http.MethodPost, "/mcp", initialize, as(alice)...),
			s.send(ctx, http.MethodGet, "/mcp", "", append(as(alice), "Accept", "text/event-stream")...),
			s.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...),
			s.send(ctx, http.MethodPost, "/mcp/message?sessionid="+session, call(2, "read"), as(alice)...),
		} {
			Expect(answer.StatusCode).To(Equal(http.StatusServiceUnavailable), answer.body)
			Expect(answer.Header.Get("Retry-After")).NotTo(BeEmpty())
			Expect(answer.Header).NotTo(HaveKey("Mcp-Session-Id"))
			Expect(answer.body).NotTo(ContainSubstring("disk"))
		}
		secrets.lost.Store(false)
		Expect(s.send(ctx, http.MethodPost, "/mcp", call(2, "read"), in(session, alice)...).body).
			To(ContainSubstring("ran read"))
	})
})
