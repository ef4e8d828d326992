package main

import (
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

const (
	pageLimit    = 1 << 20 // bytes
	answerLimit  = 30 * time.Second
	formEncoding = "application/x-www-form-urlencoded"
)

var (
	formAction   = regexp.MustCompile(`<form method="post" action="([^"]*)"`)
	hiddenTicket = regexp.MustCompile(`name="ticket" value="([^"]*)"`)
)

// approve acts like a person in a browser: it opens the authorization URL, pastes the token into
// the form, approves, and follows the redirect to the client.
func approve(ctx context.Context, authorizeURL, token string) error {
	page, err := request(ctx, http.MethodGet, authorizeURL, nil)
	if err != nil {
		return fmt.Errorf("opening the consent page: %w", err)
	}
	action, ticket := formAction.FindStringSubmatch(page), hiddenTicket.FindStringSubmatch(page)
	if action == nil || ticket == nil {
		return fmt.Errorf("opening the consent page: it has no form:\n%s", page)
	}
	form := url.Values{"ticket": {html.UnescapeString(ticket[1])}, "bearer_token": {token}, "decision": {"approve"}}
	if _, err := request(ctx, http.MethodPost, html.UnescapeString(action[1]), form); err != nil {
		return fmt.Errorf("approving: %w", err)
	}
	return nil
}

// request follows redirects like a browser and requires a final 200.
func request(ctx context.Context, method, target string, form url.Values) (page string, err error) {
	r, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	if form != nil {
		r.Header.Set("Content-Type", formEncoding)
		r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
	}
	client := &http.Client{Timeout: answerLimit}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, pageLimit))
	switch {
	case err != nil:
		return "", err
	case answer.StatusCode != http.StatusOK:
		return "", fmt.Errorf("the response is %s:\n%s", answer.Status, body)
	}
	return string(body), nil
}
