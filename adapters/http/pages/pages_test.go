package pages

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestPages(t *testing.T) {
	suite.Run(t, "Pages")
}

const (
	action = "https://cms.example/oauth/authorize"
	manage = "https://cms.example/oauth/connections"
)

// permissionsOf returns permissions without checkboxes.
func permissionsOf(texts ...string) (permissions []Permission) {
	for _, text := range texts {
		permissions = append(permissions, Permission{Text: text})
	}
	return permissions
}

// plain is a consent page without a warning; change adjusts it.
func plain(change ...func(*Consent)) Consent {
	c := Consent{
		ClientName:   "Claude",
		ClientHost:   "claude.ai",
		RedirectHost: "claude.ai",
		Permissions:  permissionsOf("Use the tools that your token allows."),
		Server:       Server{"cms.example", "https://cms.example/mcp"},
		Action:       action,
		Manage:       manage,
		Ticket:       "sealed-ticket",
	}
	for _, apply := range change {
		apply(&c)
	}
	return c
}

// drawn are the pages of cms.example.
func drawn(appearance Appearance) *Pages {
	GinkgoHelper()
	pages, err := New("cms.example", appearance, nil)
	Expect(err).NotTo(HaveOccurred())
	return pages
}

func english() Edition { return drawn(Appearance{}).For("") }

func showConsent(c Consent) *httptest.ResponseRecorder {
	GinkgoHelper()
	w := httptest.NewRecorder()
	Expect(english().WriteConsent(w, http.StatusOK, c)).To(Succeed())
	return w
}

func showProblem(p Problem) *httptest.ResponseRecorder {
	GinkgoHelper()
	w := httptest.NewRecorder()
	Expect(english().WriteProblem(w, http.StatusBadRequest, p)).To(Succeed())
	return w
}

func styleNonce(w *httptest.ResponseRecorder) string {
	GinkgoHelper()
	found := regexp.MustCompile(`<style nonce="([^"]*)">`).FindAllStringSubmatch(w.Body.String(), -1)
	Expect(found).To(HaveLen(1))
	return found[0][1]
}

var _ = Describe("Writing a page", func() {
	DescribeTable("carries the HTML headers of the catalogue and no form-action", Label("A38", "A41"),
		func(show func() *httptest.ResponseRecorder) {
			w := show()
			h := w.Header()
			Expect(h).To(HaveLen(8))
			Expect(h.Get("Content-Length")).To(Equal(strconv.Itoa(w.Body.Len())))
			Expect(h.Get("Content-Language")).To(Equal("en"))
			Expect(h.Get("Content-Type")).To(Equal("text/html; charset=utf-8"))
			Expect(h.Get("Cache-Control")).To(Equal("no-store"))
			Expect(h.Get("Content-Security-Policy")).To(Equal(
				"default-src 'none'; style-src 'nonce-" + styleNonce(w) + "'; base-uri 'none'; frame-ancestors 'none'"))
			Expect(h.Get("X-Frame-Options")).To(Equal("DENY"))
			Expect(h.Get("X-Content-Type-Options")).To(Equal("nosniff"))
			Expect(h.Get("Referrer-Policy")).To(Equal("same-origin"))
		},
		Entry("when it asks for consent", func() *httptest.ResponseRecorder { return showConsent(plain()) }),
		Entry("when it shows connections", func() *httptest.ResponseRecorder { return showConnections(living()) }),
		Entry("when it tells a problem", func() *httptest.ResponseRecorder {
			return showProblem(Problem{Title: "No"})
		}),
	)

	It("gives every response a nonce of its own", Label("A38"), func() {
		first, second := styleNonce(showConsent(plain())), styleNonce(showConsent(plain()))
		Expect(first).NotTo(Equal(second))
		Expect(len(first)).To(BeNumerically(">=", 22))
	})

	It("writes nothing at all when a page cannot be rendered", Label("A33"), func() {
		w := httptest.NewRecorder()
		broken := templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
			_, _ = io.WriteString(w, "half a page")
			return errBroken
		})
		Expect(english().sheet().write(w, http.StatusOK, broken)).To(MatchError(errBroken))
		Expect(w.Body.Len()).To(BeZero())
		Expect(w.Header()).To(BeEmpty())
	})

	It("names no address to load, none to follow but the site's own, and runs no script", Label("A37", "A40"), func() {
		everything := showConsent(crowded()).Body.String() + showProblem(withReturn()).Body.String() +
			showConnections(living()).Body.String()
		everything = strings.ReplaceAll(everything, `<a href="`+manage+`">`, "")
		Expect(everything).
			NotTo(MatchRegexp(
				`(?i)<(script|img|link|iframe|object|a|base)\b|\b(src|href|srcset|background|on\w+)\s*=|url\(|` +
					`@import|http-equiv`))
		rest := strings.NewReplacer(action, "", manage, "", crowded().Server.URL, "").Replace(everything)
		Expect(rest).NotTo(MatchRegexp(`(?i)https?:|//\w`))
	})
})

// crowded is the largest consent page: every warning, a problem, the longest texts, a ticket of 8
// KiB.
func crowded() Consent {
	return plain(func(c *Consent) {
		c.Loopback, c.PrivateScheme, c.ForeignRedirect, c.Unnamed, c.Offline = true, true, true, true, true
		c.ClientName = strings.Repeat("<", 200)
		c.ClientHost, c.RedirectHost = strings.Repeat("a.", 126)+"b", strings.Repeat("c.", 126)+"d"
		c.Permissions = permissionsOf("Read articles.", "Write articles.", "Publish articles.", "Change settings.")
		c.Problem = "This site did not accept the token."
		c.Ticket = strings.Repeat("t", 8<<10)
	})
}

func showConnections(c Connections) *httptest.ResponseRecorder {
	GinkgoHelper()
	w := httptest.NewRecorder()
	Expect(english().WriteConnections(w, http.StatusOK, c)).To(Succeed())
	return w
}

// living is a page with an app of each kind.
func living() Connections {
	at := time.Date(2026, 1, 2, 12, 3, 4, 0, time.FixedZone("CET", 3600))
	app := func(grant, host string) Connection {
		return Connection{
			Grant:        grant,
			ClientName:   "App <" + grant + ">",
			ClientHost:   host,
			Permissions:  []Permission{{Text: "Read.", Scope: "read"}, {Text: "Write.", Scope: "write", Allowed: true}},
			CreatedAt:    at,
			EndsBy:       at.AddDate(0, 1, 0),
			EndsAtLatest: at.AddDate(0, 6, 0),
		}
	}
	local, mobile, web := app("g1", "client.example"), app("g2", "mobile.example"), app("g3", "web.example")
	local.Loopback, mobile.PrivateScheme, web.LastUsedAt, mobile.Waiting = true, true, at, true
	return Connections{
		Active: []Connection{local, mobile, web},
		Now:    at.Add(3 * time.Hour),
		Action: manage,
		Ticket: "sealed",
		All:    3,
		Page:   1,
		Pages:  1,
		Limit:  100,
	}
}

func withReturn() Problem {
	return Problem{
		Title:      "Not offered",
		Text:       "The app asked for something unknown.",
		Code:       "invalid_scope",
		Incident:   "7KQ2M4XW",
		ClientHost: "claude.ai",
		Return:     &Return{Host: "client.example", Action: action, Ticket: "error-ticket"},
	}
}

var errBroken = errors.New("broken pipe")
