package upstream

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	endpointParameter = "endpoint"
	endpointMark      = "endpoint-" // tells the bound address of a message endpoint from the name of a session
	firstEventBytes   = 8 << 10
)

// announce lets the messages of an HTTP+SSE stream come back through the gateway (U13).
func (u *Upstream) announce(answer *http.Response, x *exchange) {
	answer.Header.Del("Content-Length")
	answer.ContentLength = -1
	answer.Body = &announcement{
		Closer: answer.Body, from: bufio.NewReaderSize(answer.Body, firstEventBytes),
		rewrite: func(address string) (string, error) { return u.sealEndpoint(address, x) },
	}
}

// sealEndpoint binds the upstream's message endpoint to its owner, and returns where its messages are posted instead.
func (u *Upstream) sealEndpoint(address string, x *exchange) (string, error) {
	target, err := x.target.Parse(address)
	if err != nil || target.Scheme != x.target.Scheme || target.Host != x.target.Host && target.Host != u.options.Host || strings.HasPrefix(target.EscapedPath(), "//") {
		u.options.Logger.Error("the upstream's SSE stream names a message endpoint at another origin, so it was ended", "rule", "U13")
		return "", errors.New("the message endpoint is at another origin")
	}
	bound, err := u.options.Sessions.BindSession(endpointMark+base64.RawURLEncoding.EncodeToString([]byte(target.RequestURI())), u.owner(x.sender))
	if err != nil {
		return "", fmt.Errorf("binding a message endpoint: %w", err)
	}
	return u.options.MessagePath + "?" + url.Values{endpointParameter: {bound}}.Encode(), nil
}

// openEndpoint returns where the upstream wants the messages of the stream that the query names.
func (u *Upstream) openEndpoint(query url.Values, owner string) (*url.URL, error) {
	opened, err := u.open(query.Get(endpointParameter), owner)
	if err != nil {
		return nil, err
	}
	encoded, marked := strings.CutPrefix(opened, endpointMark)
	address, err := base64.RawURLEncoding.DecodeString(encoded)
	if !marked || err != nil {
		return nil, oauth.ErrNotFound
	}
	path, err := url.ParseRequestURI(string(address))
	if err != nil {
		return nil, oauth.ErrNotFound
	}
	target := *u.url // whose host it stays, whatever the path looks like
	target.Path, target.RawPath, target.RawQuery = path.Path, path.RawPath, path.RawQuery
	return &target, nil
}

// announcement is a stream whose first event may say where to post. Everything else passes as it is.
type announcement struct {
	io.Closer
	from    *bufio.Reader
	rewrite func(address string) (string, error)
	ready   bytes.Buffer
	over    bool // the first event has gone by
}

// Read implements io.Reader.
func (a *announcement) Read(p []byte) (int, error) {
	for !a.over && a.ready.Len() == 0 {
		if err := a.readEvent(); err != nil {
			return 0, err
		}
	}
	if a.ready.Len() > 0 {
		return a.ready.Read(p)
	}
	return a.from.Read(p)
}

// readEvent holds an event back until it is whole; comments before it go by at once.
func (a *announcement) readEvent() error {
	var event, address string
	var held bytes.Buffer
	for held.Len() < firstEventBytes {
		line, err := a.from.ReadSlice('\n')
		held.Write(line)
		if err != nil { // the next Read meets it again; a line that is too long is no endpoint
			break
		}
		text := strings.TrimPrefix(strings.TrimRight(string(line), "\r\n"), "\ufeff")
		field, value, _ := strings.Cut(text, ":")
		switch {
		case text == "" && event+address != "":
			return a.finish(event, address, held.Bytes())
		case event+address == "" && (text == "" || field == ""):
			a.ready.Write(held.Bytes())
			return nil
		case field == "event":
			event = strings.TrimPrefix(value, " ")
		case field == "data":
			address = strings.TrimPrefix(value, " ")
		}
	}
	a.over = true
	a.ready.Write(held.Bytes())
	return nil
}

// finish passes the first event on.
func (a *announcement) finish(event, address string, raw []byte) error {
	a.over = true
	if event != endpointParameter {
		a.ready.Write(raw)
		return nil
	}
	ours, err := a.rewrite(address)
	if err != nil {
		return err
	}
	fmt.Fprintf(&a.ready, "event: endpoint\ndata: %s\n\n", ours)
	return nil
}
