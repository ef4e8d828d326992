package upstream

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/adapters/mcp/gateway"
	"github.com/pasteport/pasteport/adapters/mcp/message"
)

const (
	idlePerUpstream = 256
	// Shorter than the keep-alive of Node and Python, to avoid connections that they are closing.
	idleLimit      = 3 * time.Second
	failuresInARow = 5
	pause          = 5 * time.Second // without requests, after failuresInARow and after each further failure
)

var (
	errTimeout = errors.New("it took longer than upstream-timeout")
	errCut     = errors.New("it cut off its response")
)

// errDown is the state of an upstream that gets no requests.
var errDown = fmt.Errorf("it has failed %d times in a row, and gets no requests for %s", failuresInARow, pause)

// Health returns an error while the upstream gets no requests, because it has failed repeatedly.
func (u *Upstream) Health() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.failures >= failuresInARow && time.Since(u.paused) < u.pause {
		return errDown
	}
	return nil
}

// count counts the result of a request.
func (u *Upstream) count(failed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !failed {
		u.failures = 0
		return
	}
	u.failures, u.paused = u.failures+1, time.Now()
}

// askCheck asks for a check after a failed call. It does not wait for one.
func (u *Upstream) askCheck() {
	select {
	case u.failed <- struct{}{}:
	default:
	}
}

// send sends a request, unless the upstream is down, and limits the wait for the response. Its
// errors are *gateway.Failure, or the error of the request's context.
func (u *Upstream) send(r *http.Request) (*http.Response, error) {
	if err := u.Health(); err != nil {
		failure := failed(http.StatusServiceUnavailable, "is down; retry in a few seconds", err)
		failure.Rule = "U10"
		return nil, failure
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	if r.Method != http.MethodGet { // the first event of a stream may take longer
		timer := time.AfterFunc(u.config.Patience, func() { cancel(errTimeout) })
		defer timer.Stop()
	}
	var reused atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(c httptrace.GotConnInfo) { reused.Store(c.Reused) },
	})
	began := time.Now()
	answer, err := u.next.RoundTrip(r.WithContext(traced))
	if u.config.Observe != nil {
		seen := gateway.Request{Method: r.Method, Took: time.Since(began)}
		if err == nil {
			seen.Status = answer.StatusCode
		}
		u.config.Observe(seen)
	}
	if err != nil {
		closedIdle := reused.Load() && errors.Is(outbound.Reason(err), outbound.ErrBroken) // not an outage
		err = failureOf(err, ctx)
		cancel(nil)
		if r.Context().Err() == nil { // else the client has given up
			u.askCheck()
			if !closedIdle {
				u.count(true)
			}
		}
		return nil, err
	}
	failures := []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
	isDown := slices.Contains(failures, answer.StatusCode)
	if u.count(isDown); isDown {
		u.askCheck()
	}
	// Some servers and proxies compress every response; neither clients nor the rules expect it.
	switch strings.ToLower(strings.Join(answer.Header.Values("Content-Encoding"), ",")) {
	case "gzip", "x-gzip":
		answer.Body, answer.ContentLength = &gunzip{ReadCloser: answer.Body}, -1
		for _, name := range []string{"Content-Encoding", "Content-Length", "Etag"} {
			answer.Header.Del(name)
		}
	case "identity":
		answer.Header.Del("Content-Encoding")
	}
	answer.Body = &responseBody{answer.Body, cancel}
	return answer, nil
}

// failureOf maps an error of the round trip to a *gateway.Failure.
func failureOf(err error, ctx context.Context) error {
	var timeout net.Error
	switch {
	case errors.Is(context.Cause(ctx), errTimeout):
		return failed(http.StatusGatewayTimeout, "did not answer in time", errTimeout)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &timeout) && timeout.Timeout():
		return failed(http.StatusGatewayTimeout, "cannot be reached in time", outbound.Reason(err))
	}
	return failed(http.StatusBadGateway, "cannot be reached", outbound.Reason(err))
}

// failed returns a failure. Its text contains nothing of the upstream.
func failed(status int, text string, cause error) *gateway.Failure {
	return &gateway.Failure{
		Status: status,
		Rule:   "U9",
		Text:   "The MCP server behind this gateway " + text,
		Cause:  cause,
	}
}

// retryAfter returns a Retry-After that is valid (RFC 9110 §10.2.3).
func retryAfter(header http.Header) string {
	text := header.Get("Retry-After")
	_, notSeconds := strconv.ParseUint(text, 10, 31)
	_, notDate := http.ParseTime(text)
	if notSeconds != nil && notDate != nil {
		return ""
	}
	return text
}

const maxErrorBody = 64 << 10

// isJSONRPCError reports whether an error response is a JSON-RPC error, which is passed to the
// client. Any other body may reveal internals of the upstream.
func isJSONRPCError(answer *http.Response) bool {
	mediaType, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if mediaType != "application/json" {
		return false
	}
	body, complete := peek(answer)
	return complete && message.DecodeOnly(body).Error != nil
}

// refusesHost reports whether the upstream refused the Host header. It reads the body of a 403
// only.
func refusesHost(answer *http.Response) bool {
	if answer.StatusCode != http.StatusForbidden || message.IsEventStream(answer.Header) {
		return outbound.RefusesHost(answer.StatusCode, nil)
	}
	body, _ := peek(answer)
	return outbound.RefusesHost(answer.StatusCode, body)
}

// peek reads the body of an error within limits of time and size. The response keeps the body, so
// that it can still be passed back.
func peek(answer *http.Response) (body []byte, complete bool) {
	if r, ok := answer.Body.(*responseBody); ok {
		defer time.AfterFunc(2*time.Second, func() { r.cancel(nil) }).Stop()
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxErrorBody+1))
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), answer.Body), answer.Body}
	return body, err == nil && len(body) <= maxErrorBody
}

// responseBody is the body of a response. It fails with errCut when it breaks off, and releases the
// context of its request when it is closed.
type responseBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errCut, err)
	}
	return n, err
}

func (b *responseBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// gunzip decompresses a body. It begins at the first Read, because a stream can send its first
// bytes late.
type gunzip struct {
	io.ReadCloser
	plain *gzip.Reader
}

func (g *gunzip) Read(p []byte) (n int, err error) {
	if g.plain == nil {
		if g.plain, err = gzip.NewReader(g.ReadCloser); err != nil {
			return 0, err // io.EOF for a response without a body
		}
	}
	return g.plain.Read(p)
}
