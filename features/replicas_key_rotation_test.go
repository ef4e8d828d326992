package features_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
)

// NewReplica starts a service with the settings and the database of this one, and a copy of its
// server secret.
func (w *World) NewReplica() *World {
	GinkgoHelper()
	replica := newWorld(w.adjust, func(config *service.Config) { config.Issuer = w.Issuer })
	replica.Clients, replica.Clock, replica.Database = w.Clients, w.Clock, w.Database
	if w.Database == "" {
		own := filepath.Join(replica.Dir, oauthDatabase)
		Expect(os.Remove(own)).To(Succeed())
		Expect(os.Symlink(filepath.Join(w.Dir, oauthDatabase), own)).To(Succeed())
	}
	replica.keepSecrets(serverSecret(w))
	replica.start("127.0.0.1:0")
	DeferCleanup(func() { replica.Stop() })
	return replica
}

// keepSecrets replaces the secret file of a service, as an updated Kubernetes Secret does.
func (w *World) keepSecrets(secrets ...string) {
	GinkgoHelper()
	text := secrets[0]
	if len(secrets) > 1 {
		text = ""
		for _, secret := range secrets {
			text += time.Now().UTC().Format(time.RFC3339) + " " +
				base64.StdEncoding.EncodeToString([]byte(secret)) + "\n"
		}
	}
	file := filepath.Join(w.Dir, "oauth.db.secret")
	Expect(os.WriteFile(file+".next", []byte(text), 0o600)).To(Succeed())
	Expect(os.Rename(file+".next", file)).To(Succeed())
}

var _ = Describe("Replacing the server secret of replicas one after the other", Label("J2"), func() {
	var one, other *World
	var client *Client
	var before, next string
	BeforeEach(func() {
		one = NewWorld()
		other, client = one.NewReplica(), one.NewClient()
		before, next = serverSecret(one), strings.Repeat("the next one of 32", 2)[:32]
	})
	refresh := func(ctx SpecContext, at *World, token string) Response {
		GinkgoHelper()
		return Post(ctx, at.Issuer+"/oauth/token", client.Refresh(token))
	}

	It("keeps all grants when all replicas have the new secret before one seals with it", func(ctx SpecContext) {
		token := client.Connect(ctx).Refresh
		for _, change := range []func(){
			func() {},
			func() { one.keepSecrets(before, next) },
			func() { other.keepSecrets(before, next) },
			func() { one.keepSecrets(next, before) },
			func() { other.keepSecrets(next, before) },
		} {
			open := client.Consent(ctx)
			change()
			for _, at := range []*World{one, other, one} {
				answer := refresh(ctx, at, token)
				Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
				token = answer.Tokens().Refresh
			}
			form := url.Values{
				"ticket":       {open.Hidden.Get("ticket")},
				"decision":     {"approve"},
				"bearer_token": {one.Token},
			}
			Expect(Post(ctx, other.Issuer+"/oauth/authorize", form).StatusCode).To(Equal(http.StatusSeeOther))
		}
	})

	It("treats what was issued under a secret that a replica does not have yet as an outage, and ends nothing",
		Label("J6", "H2", "D30"), func(ctx SpecContext) {
			token := client.Connect(ctx).Refresh
			one.keepSecrets(next, before)
			token = refresh(ctx, one, token).Tokens().Refresh
			open := client.Consent(ctx)
			// The replica refuses the token until the first one has stored the fingerprint of its
			// new secret.
			Eventually(func() int { return refresh(ctx, other, token).StatusCode }).WithTimeout(patience).
				Should(Equal(http.StatusServiceUnavailable))
			form := url.Values{
				"ticket":       {open.Hidden.Get("ticket")},
				"decision":     {"approve"},
				"bearer_token": {one.Token},
			}
			Expect(Post(ctx, other.Issuer+"/oauth/authorize", form).StatusCode).To(Equal(http.StatusBadRequest))
			other.keepSecrets(next, before)
			Expect(refresh(ctx, other, token).StatusCode).To(Equal(http.StatusOK))
			Expect(Post(ctx, other.Issuer+"/oauth/authorize", form).StatusCode).To(Equal(http.StatusSeeOther))
		})
})
