package features_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"database/sql"
	"path/filepath"
	"time"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap"
	"github.com/pasteport/pasteport/features/chromium"
	"github.com/pasteport/pasteport/features/suite"
)

// browserWithLogins starts a Chromium in whose profile a login for each origin is saved.
func browserWithLogins(origins ...string) *Browser {
	GinkgoHelper()
	suite.Needs("browser")
	folder := GinkgoT().TempDir()
	profile := chromedp.UserDataDir(folder)
	_, quit, err := chromium.Open(chromium.DejaVu, profile) // makes the profile
	Expect(err).NotTo(HaveOccurred())
	saved := filepath.Join(folder, "Default", "Login Data")
	Eventually(saved).WithTimeout(patience).Should(BeARegularFile())
	Expect(quit()).To(Succeed())
	Expect(saveLogins(saved, origins...)).To(Succeed())
	window, quit, err := chromium.Open(chromium.DejaVu, profile)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(quit()).To(Succeed()) })
	return &Browser{window}
}

// saveLogins writes what Chromium's password manager writes where it has no keyring of the system.
func saveLogins(file string, origins ...string) error {
	db, err := sql.Open("sqlite", file)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	key, err := pbkdf2.Key(sha1.New, "peanuts", []byte("saltysalt"), 1, aes.BlockSize)
	if err != nil {
		return err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return err
	}
	password := []byte("password-of-site") // fills one block, so that the padding is another one
	password = append(password, bytes.Repeat([]byte{aes.BlockSize}, aes.BlockSize)...)
	cipher.NewCBCEncrypter(block, bytes.Repeat([]byte(" "), aes.BlockSize)).CryptBlocks(password, password)
	for _, origin := range origins {
		if _, err := db.Exec(`INSERT INTO logins (origin_url, action_url, username_element, username_value,
			password_element, password_value, submit_element, signon_realm, date_created, blacklisted_by_user, scheme,
			password_type, times_used, form_data, skip_zero_click, generation_upload_status, possible_username_pairs)
			VALUES (?1, ?1, '', 'ada', '', ?2, '', ?1, 13300000000000000, 0, 0, 0, 1, x'', 0, 0, x'')`,
			origin+"/", append([]byte("v10"), password...)); err != nil {
			return err
		}
	}
	return nil
}

// filled returns the names of the fields that the password manager has filled in. It waits until
// the password manager has filled in a login form that is added to the page.
func (b *Browser) filled(ctx context.Context) (names []string) {
	GinkgoHelper()
	b.Do(ctx, chromedp.Evaluate[chromedp.Void](`document.body.insertAdjacentHTML("beforeend",
		'<form id="login"><input name="user" autocomplete="username"><input name="password" type="password"></form>')`))
	const named = `Array.from(document.querySelectorAll("input:autofill"), e => e.name)`
	Eventually(func() []string {
		names = Ask(ctx, b, chromedp.Evaluate[[]string](named))
		return names
	}).WithContext(ctx).WithTimeout(patience).Should(ContainElements("user", "password"))
	return names
}

var _ = Describe("A password manager with a saved login for the site", Label("browser", "A37"), func() {
	It("fills it into no form of Pasteport", func(ctx SpecContext) {
		const key = "key-of-ada-1234"
		site := NewWorld()
		upstream := NewUpstreamReading(basicCredentials, "ada:"+key)
		fields := []bootstrap.HostField{{Name: "user"}, {Name: "token", Secret: true}}
		gateway := NewGateway(upstream.URL+"/mcp", askingFor(fields, "Authorization: Basic {base64(user:token)}"))
		browser := browserWithLogins(site.Issuer, gateway.Issuer)
		site.NewClient().Connect(ctx)
		gateway.NewClient().ConnectWith(ctx, "user", "ada", "token", key)
		for world, entered := range map[*World][]string{
			site:    {`input[name="bearer_token"]`, site.Token},
			gateway: {`input[name="field_user"]`, "ada", `input[name="field_token"]`, key},
		} {
			browser.Do(ctx, chromedp.Navigate(world.Issuer+"/oauth/authorize?"+world.NewClient().Request().Encode()))
			Expect(browser.filled(ctx)).To(HaveLen(2), "consent")
			browser.Do(ctx, chromedp.Navigate(world.Issuer+"/oauth/connections"))
			Expect(browser.filled(ctx)).To(HaveLen(2), "connections")
			browser.Do(ctx, chromedp.Navigate(world.Issuer+"/oauth/connections"))
			for i := 0; i < len(entered); i += 2 {
				browser.Do(ctx, chromedp.SendKeys(chromedp.CSS(entered[i]), entered[i+1]))
			}
			browser.Do(ctx, chromedp.Click(chromedp.CSS(`button[value="show"]`)))
			Expect(browser.Text(ctx, "h2")).To(ContainSubstring("Spec Client"))
			Expect(browser.filled(ctx)).To(HaveLen(2), "replacement")
		}
	}, SpecTimeout(3*time.Minute))
})
