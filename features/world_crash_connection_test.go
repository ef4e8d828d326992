package features_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// doubt is a request without a response: the service may have executed it or not.
type doubt int

const (
	none doubt = iota
	exchanging
	refreshing
	leaving
)

// provenTokens is how many access tokens of a connection stay valid, whatever refreshes were
// interrupted: each of those may have ended the oldest of eight.
const provenTokens = 4

// Connection is the state of one connection as its client knows it from the responses.
type Connection struct {
	*Client
	code, spent string // the code before and after its exchange
	spentAt     time.Time
	live, dead  []string // access tokens
	refresh     string
	doubt       doubt
	over        bool // revoked, replayed, or lost with the answer to its exchange
}

// step runs a random next request and reports whether there was a response. Every response must be
// a success.
func (c *Connection) step(ctx context.Context, chance *rand.Rand) bool {
	GinkgoHelper()
	switch {
	case c.code == "" && c.spent == "":
		return c.authorize(ctx)
	case c.spent == "":
		return c.exchange(ctx)
	}
	switch roll := chance.IntN(10); {
	case roll < 5:
		return c.renew(ctx)
	case roll < 7:
		return c.leave(ctx)
	case roll < 8 && len(c.live) > 1:
		return c.drop(ctx)
	}
	answer, ok := send(c.World.Converse(ctx, stateless, c.live[len(c.live)-1]).message(ctx, "tools/list", params{}))
	Expect(!ok || answer.StatusCode == http.StatusOK).To(BeTrue(), answer.Text)
	return ok
}

func (c *Connection) authorize(ctx context.Context) bool {
	GinkgoHelper()
	asked, ok := send(c.request(ctx, http.MethodGet, "/oauth/authorize?"+c.Request().Encode(), nil))
	if !ok {
		return false
	}
	Expect(asked.StatusCode).To(Equal(http.StatusOK), asked.Text)
	page := ReadPage(asked)
	page.Hidden.Set("decision", "approve")
	page.Hidden.Set("bearer_token", c.World.Token)
	answer, ok := send(c.request(ctx, http.MethodPost, "/oauth/authorize", page.Hidden))
	if ok {
		Expect(answer.StatusCode).To(Equal(http.StatusSeeOther), answer.Text)
		c.code = answer.Target().Query().Get("code")
	}
	return ok
}

func (c *Connection) exchange(ctx context.Context) bool {
	GinkgoHelper()
	answer, ok := send(c.request(ctx, http.MethodPost, "/oauth/token", c.Exchange(c.code)))
	if !ok {
		c.doubt = exchanging
		return false
	}
	c.learn(answer)
	return true
}

func (c *Connection) renew(ctx context.Context) bool {
	GinkgoHelper()
	answer, ok := send(c.request(ctx, http.MethodPost, "/oauth/token", c.Refresh(c.refresh)))
	if !ok {
		c.doubt = refreshing
		return false
	}
	c.learn(answer)
	return true
}

func (c *Connection) leave(ctx context.Context) bool {
	GinkgoHelper()
	answer, ok := send(c.request(ctx, http.MethodPost, "/oauth/revoke", url.Values{"token": {c.refresh}}))
	if !ok {
		c.doubt = leaving
		return false
	}
	Expect(answer.StatusCode).To(Equal(http.StatusOK))
	c.over = true
	return true
}

// drop revokes one access token; without a response its state is unknown.
func (c *Connection) drop(ctx context.Context) bool {
	GinkgoHelper()
	token := c.live[0]
	c.live = c.live[1:]
	answer, ok := send(c.request(ctx, http.MethodPost, "/oauth/revoke", url.Values{"token": {token}}))
	if ok {
		Expect(answer.StatusCode).To(Equal(http.StatusOK))
		c.dead = append(c.dead, token)
	}
	return ok
}

func (c *Connection) learn(answer Response) {
	GinkgoHelper()
	Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
	tokens := answer.Tokens()
	if c.spent == "" {
		c.spent, c.spentAt = c.code, time.Now()
	}
	c.live, c.refresh, c.doubt = append(c.live, tokens.Access), tokens.Refresh, none
	c.live = c.live[max(0, len(c.live)-provenTokens):]
}

// settle resolves the doubt after a crash and checks the service against all its responses.
func (c *Connection) settle(ctx context.Context) {
	GinkgoHelper()
	switch c.doubt {
	case exchanging: // a code that was spent without a response is lost, and no token exists
		if answer := c.Token(ctx, c.Exchange(c.code)); answer.StatusCode == http.StatusOK {
			c.learn(answer)
		} else {
			Expect(answer).To(BeRefusedAs(400, "invalid_grant"))
			c.over = true
		}
	case refreshing: // the grace window covers both cases
		c.learn(c.Token(ctx, c.Refresh(c.refresh)))
	case leaving: // done completely or not at all
		c.over = c.World.Call(ctx, c.live[0]).StatusCode != http.StatusOK
	case none:
		if c.code != "" && c.spent == "" {
			c.learn(c.Token(ctx, c.Exchange(c.code)))
		}
	}
	c.doubt = none
	if c.over {
		c.expectOver(ctx)
		return
	}
	for _, token := range c.live {
		Expect(c.World.Call(ctx, token).StatusCode).To(Equal(http.StatusOK), "an access token is lost")
	}
	for _, token := range c.dead {
		Expect(c.World.Call(ctx, token).StatusCode).To(Equal(http.StatusUnauthorized), "a revoked access token is back")
	}
	if c.refresh != "" {
		c.learn(c.Token(ctx, c.Refresh(c.refresh)))
	}
}

// retryWindow is the time after redemption in which a replayed code does not end the grant;
// doubtful is the client's error of that time.
const retryWindow, doubtful = 10 * time.Second, 2 * time.Second

// replay exchanges the code again, which ends the connection unless the code was redeemed within
// retryWindow.
func (c *Connection) replay(ctx context.Context) {
	GinkgoHelper()
	age := time.Since(c.spentAt)
	if (age - retryWindow).Abs() < doubtful {
		return
	}
	Expect(c.Token(ctx, c.Exchange(c.spent))).To(BeRefusedAs(400, "invalid_grant"), "a code is spent twice")
	if age > retryWindow {
		c.over = true
		c.expectOver(ctx)
	}
}

func (c *Connection) expectOver(ctx context.Context) {
	GinkgoHelper()
	for _, token := range slices.Concat(c.live, c.dead) {
		Expect(c.World.Call(ctx, token).StatusCode).
			To(Equal(http.StatusUnauthorized), "an access token outlives its grant")
	}
	if c.refresh != "" {
		Expect(c.Token(ctx, c.Refresh(c.refresh))).To(BeRefusedAs(400, "invalid_grant"))
	}
	Expect(c.Token(ctx, c.Exchange(c.code))).To(BeRefusedAs(400, "invalid_grant"), "a code is spent twice")
}

func (c *Connection) request(ctx context.Context, method, path string, form url.Values) *http.Request {
	GinkgoHelper()
	r := must(http.NewRequestWithContext(ctx, method, c.World.Issuer+path, bytes.NewBufferString(form.Encode())))
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}
