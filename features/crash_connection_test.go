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

// doubt is what a client asked for without getting an answer: it may have happened or not.
type doubt int

const (
	none doubt = iota
	exchanging
	refreshing
	leaving
)

// Connection is one person's connection as their client knows it, from the answers that it got.
type Connection struct {
	*Client
	code, spent string // the code before and after its exchange
	spentAt     time.Time
	live, dead  []string // access tokens
	refresh     string
	doubt       doubt
	over        bool // revoked, replayed, or lost with the answer to its exchange
}

// step does what a client may do next; it returns whether there was an answer. Every answer has to be a good one.
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

// drop revokes one access token; without an answer nothing is known of it any more.
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
}

// settle removes the doubt after a crash and holds the service to everything that it had answered.
func (c *Connection) settle(ctx context.Context) {
	GinkgoHelper()
	switch c.doubt {
	case exchanging: // a code that was spent without an answer is lost, and no token came of it (I19)
		if answer := c.Token(ctx, c.Exchange(c.code)); answer.StatusCode == http.StatusOK {
			c.learn(answer)
		} else {
			Expect(answer).To(BeRefusedAs(400, "invalid_grant"))
			c.over = true
		}
	case refreshing: // healed by the grace window in any case (D27)
		c.learn(c.Token(ctx, c.Refresh(c.refresh)))
	case leaving: // done or not, but not by half
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
		c.live = c.live[max(0, len(c.live)-3):]
	}
}

// retryWindow is how long after its redemption a code that is sent again ends nothing (D19), and doubtful is how exactly a client knows.
const retryWindow, doubtful = 10 * time.Second, 2 * time.Second

// replay exchanges the code again, which ends the connection unless the code was redeemed just now (D19).
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
		Expect(c.World.Call(ctx, token).StatusCode).To(Equal(http.StatusUnauthorized), "an access token outlives its grant")
	}
	if c.refresh != "" {
		Expect(c.Token(ctx, c.Refresh(c.refresh))).To(BeRefusedAs(400, "invalid_grant"))
	}
	Expect(c.Token(ctx, c.Exchange(c.code))).To(BeRefusedAs(400, "invalid_grant"), "a code is spent twice")
}

func (c *Connection) request(ctx context.Context, method, path string, form url.Values) *http.Request {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, method, c.World.Issuer+path, bytes.NewBufferString(form.Encode()))
	Expect(err).NotTo(HaveOccurred())
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}
