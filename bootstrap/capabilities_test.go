package bootstrap_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Optional interfaces of the store", func() {
	// reported starts a server over the store and returns the lines of its log that name missing
	// interfaces.
	reported := func(store oauth.Store) (lines []map[string]string) {
		GinkgoHelper()
		var log bytes.Buffer
		authz, err := bootstrap.NewOAuthServer(oauth.Config{
			Issuer:       "https://site.example",
			VerifyBearer: func(string) bool { return true },
			Secret:       make([]byte, oauth.MinSecretLength),
			Logger:       slog.New(slog.NewJSONHandler(&log, nil)),
		}, store)
		Expect(err).NotTo(HaveOccurred())
		authz.Close()
		for _, text := range strings.Split(strings.TrimSpace(log.String()), "\n") {
			line := map[string]string{}
			if json.Unmarshal([]byte(text), &line) == nil && line["missing"] != "" {
				lines = append(lines, line)
			}
		}
		return lines
	}

	It("are not logged when the store has all", func() {
		Expect(reported(openStore())).To(BeEmpty())
	})

	It("are logged in one line when a wrapper lacks them", func() {
		lines := reported(struct{ oauth.Store }{openStore()})
		Expect(lines).To(HaveLen(1))
		Expect(lines[0]).To(HaveKeyWithValue("level", "INFO"))
		Expect(lines[0]).To(HaveKeyWithValue("missing",
			"oauth.EndWatcher, oauth.SharedStore, oauth.SecretVerifier, oauth.AuthorizationLister, "+
				"oauth.ClientDocumentStore, attempt.Log"))
	})

	It("are not logged when the wrapper has them too", func() {
		inner := openStore()
		lines := reported(struct {
			oauth.Store
			oauth.EndWatcher
			attempt.Log
		}{inner, inner, inner})
		Expect(lines).To(ConsistOf(HaveKeyWithValue("missing",
			"oauth.SharedStore, oauth.SecretVerifier, oauth.AuthorizationLister, oauth.ClientDocumentStore")))
	})

	It("are all documented for hosts", func() {
		page, err := os.ReadFile("../docs/embedding.md")
		Expect(err).NotTo(HaveOccurred())
		lines := reported(struct{ oauth.Store }{openStore()})
		Expect(lines).To(HaveLen(1))
		for _, name := range strings.Split(lines[0]["missing"], ", ") {
			Expect(string(page)).To(ContainSubstring("| `" + name + "` |"))
		}
	})
})

var _ = Describe("A short lifetime of access tokens", func() {
	warning := func(ttl time.Duration) string {
		GinkgoHelper()
		var log bytes.Buffer
		authz, err := bootstrap.NewOAuthServer(oauth.Config{
			Issuer:         "https://site.example",
			VerifyBearer:   func(string) bool { return true },
			AccessTokenTTL: ttl,
			Logger:         slog.New(slog.NewTextHandler(&log, nil)),
		}, openStore())
		Expect(err).NotTo(HaveOccurred())
		authz.Close()
		return log.String()
	}

	It("is warned of, because some clients then refresh before almost every request", func() {
		Expect(warning(6*time.Minute - time.Second)).
			To(And(ContainSubstring("level=WARN"), ContainSubstring("access_token_ttl=5m59s")))
		Expect(warning(6 * time.Minute)).NotTo(ContainSubstring("access_token_ttl"))
	})
})
