package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html"
)

// network connects to the site like a reverse proxy, with the address of the client in
// X-Forwarded-For.
type network struct {
	issuer    string
	transport *http.Transport
}

const answerLimit = 60 * time.Second

func newNetwork(s *site) *network {
	return &network{s.issuer, &http.Transport{MaxIdleConnsPerHost: 256, ResponseHeaderTimeout: answerLimit}}
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
	response, err := b.network.transport.RoundTrip(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text)}, err
}

// form is a form of a page, with its hidden fields and checked boxes.
type form struct {
	action string
	values url.Values
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
	f := form{action: attributes(node)["action"], values: url.Values{}}
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
