package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/net/html"
)

// network connects to the site like a reverse proxy without sticky sessions: it sends each request
// to the next replica, with the address of the client in X-Forwarded-For.
type network struct {
	issuer   string
	replicas []*http.Transport
	turn     atomic.Uint64
}

const answerLimit = 30 * time.Second

func (s *site) network() *network {
	n := &network{issuer: s.issuer}
	for _, r := range s.replicas {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", r.address)
		}
		n.replicas = append(n.replicas,
			&http.Transport{DialContext: dial, MaxIdleConnsPerHost: 256, ResponseHeaderTimeout: answerLimit})
	}
	return n
}

func (n *network) close() {
	for _, t := range n.replicas {
		t.CloseIdleConnections()
	}
}

// browser sends requests from one address and follows no redirect.
type browser struct {
	network *network
	address string
}

// answer is a response with its body.
type answer struct {
	status int
	header http.Header
	text   string
}

// String returns the status and the Retry-After.
func (a answer) String() string {
	text := fmt.Sprint(a.status)
	if after := a.header.Get("Retry-After"); after != "" {
		text += " with Retry-After " + after
	}
	return text
}

// open gets a page.
func (b browser) open(ctx context.Context, target string) (answer, error) {
	return b.send(ctx, http.MethodGet, target, "", http.Header{"Accept": {"text/html"}, "Accept-Language": {"en"}})
}

// post sends a form.
func (b browser) post(ctx context.Context, target string, values url.Values) (answer, error) {
	return b.send(ctx, http.MethodPost, target, values.Encode(),
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"},
			"Accept": {"text/html, application/json"}, "Accept-Language": {"en"}})
}

func (b browser) send(ctx context.Context, method, target, body string, header http.Header) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header = header
	request.Header.Set("X-Forwarded-For", b.address)
	next := b.network.replicas[b.network.turn.Add(1)%uint64(len(b.network.replicas))]
	response, err := next.RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text)}, err
}

// form is a form of a page, with its hidden fields and checked boxes.
type form struct {
	action     string
	values     url.Values
	attributes map[string]string
}

// formIn returns the first form of a page.
func formIn(page answer) (form, error) {
	root, err := html.Parse(strings.NewReader(page.text))
	if err != nil {
		return form{}, fmt.Errorf("reading a page: %w", err)
	}
	for node := range root.Descendants() {
		if node.Type == html.ElementNode && node.Data == "form" {
			return readForm(node), nil
		}
	}
	return form{}, errors.New("the page has no form")
}

func readForm(node *html.Node) form {
	f := form{values: url.Values{}, attributes: attributes(node)}
	f.action = f.attributes["action"]
	for child := range node.Descendants() {
		field := attributes(child)
		_, checked := field["checked"]
		if child.Data == "input" && field["name"] != "" && (checked || field["type"] == "hidden") {
			f.values.Add(field["name"], field["value"])
		}
	}
	return f
}

func attributes(node *html.Node) map[string]string {
	all := map[string]string{}
	for _, a := range node.Attr {
		all[a.Key] = a.Val
	}
	return all
}

// filled returns the values of the form and more.
func (f form) filled(more url.Values) url.Values {
	values := url.Values{}
	for name, value := range f.values {
		values[name] = value
	}
	for name, value := range more {
		values[name] = value
	}
	return values
}
