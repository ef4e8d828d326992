package features_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

// confinedSize is how large files of a confined program can become: 800 blocks of 512 bytes.
const confinedSize = 800 * 512

// Confine limits the size of files that the program writes, as on a nearly full disk: the system
// fails in the middle of a write.
func (b Binary) Confine() Binary {
	GinkgoHelper()
	if _, err := exec.LookPath("sh"); err != nil {
		Skip("there is no shell to limit the program with")
	}
	script := filepath.Join(GinkgoT().TempDir(), "confined")
	text := "#!/bin/sh\nulimit -S -f 800\nexec '" + string(b) + "' \"$@\"\n"
	Expect(os.WriteFile(script, []byte(text), 0o700)).To(Succeed())
	return Binary(script)
}

// Fill fills the disk with refreshes, and then with revocations, which are the smallest writes.
func Fill(ctx context.Context, client *Client) {
	GinkgoHelper()
	tokens := client.Connect(ctx)
	spendable := []string{tokens.Access}
	answer := client.Token(ctx, client.Refresh(tokens.Refresh))
	for ; answer.StatusCode == http.StatusOK; answer = client.Token(ctx, client.Refresh(tokens.Refresh)) {
		tokens = answer.Tokens()
		spendable = append(spendable, tokens.Access)
	}
	Expect(answer).To(BePutOff())
	for _, access := range spendable {
		if answer = client.Revoke(ctx, access); answer.StatusCode != http.StatusOK {
			break
		}
	}
	Expect(answer).To(BePutOff())
}

var _ = Describe("Running out of disk space", Label("N14", "D30", "E10"), func() {
	var binary Binary
	BeforeEach(func() { binary = BuildBinary() })

	It("responds to every write with 503 and Retry-After, loses nothing, and continues when there is space again",
		func(ctx SpecContext) {
			dir := filepath.Join(GinkgoT().TempDir(), "site")
			site := binary.Confine().Serve(NewClientSite(), dir, tokenVariable+"=chosen-by-the-editor")
			site.Token = "chosen-by-the-editor"
			stake := NewStake(ctx, site.NewClient())
			Fill(ctx, site.NewClient())

			answers := stake.Try(ctx)
			Expect(answers).To(BeAnOutage())
			Expect(answers["call"].StatusCode).To(Equal(http.StatusOK))

			_, err := site.database().ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
			Expect(err).NotTo(HaveOccurred())
			stake.ExpectUntouched(ctx)
		}, SpecTimeout(time.Minute))

	It("is not ready while it cannot write, logs the reason, and is ready when there is space again",
		Label("operations"), func(ctx SpecContext) {
			site := binary.Confine().
				ServeWithAdmin("127.0.0.1:0", NewClientSite(), filepath.Join(GinkgoT().TempDir(), "site"),
					tokenVariable+"=chosen-by-the-editor")
			site.Token = "chosen-by-the-editor"
			Expect(site.Ready(ctx).StatusCode).To(Equal(http.StatusOK))
			Fill(ctx, site.NewClient())
			ready := func() Response { return site.Ready(ctx) }
			Eventually(ready).WithTimeout(patience).Should(And(
				HaveField("StatusCode", http.StatusServiceUnavailable),
				HaveField("Text", ContainSubstring(`{"name":"oauth database","problem":"`))))
			Eventually(site.Err).WithTimeout(patience).
				Should(gbytes.Say(`level=WARN msg="a readiness check fails" check="oauth database" error="[^"]+disk`))

			_, err := site.database().ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
			Expect(err).NotTo(HaveOccurred())
			Eventually(ready).WithTimeout(patience).Should(HaveField("StatusCode", http.StatusOK))
			Eventually(site.Err).WithTimeout(patience).Should(gbytes.Say(`a readiness check passes again`))
		}, SpecTimeout(time.Minute))
})
