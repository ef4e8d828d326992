package demo_test

import (
	"cmp"
	"context"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/bootstrap/cli"
)

var (
	address = regexp.MustCompile(`(?m)^http://127\.0\.0\.1:\d+/start$`)
	ending  = regexp.MustCompile(`(?m)^http://\S+/oauth/connections$`)
	grant   = regexp.MustCompile(`name="grant" value="([^"]+)"`)
	ticket  = regexp.MustCompile(`name="ticket" value="([^"]+)"`)
	copied  = regexp.MustCompile(`<textarea [^>]+>([^<]+)</textarea>`)
	action  = regexp.MustCompile(`<form method="post" action="([^"]+)"`)
)

// web has a timeout, so that a hanging page fails the spec.
var web = &http.Client{Timeout: 10 * time.Second}

// direct follows no redirect.
var direct = &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
	return http.ErrUseLastResponse
}}

var _ = Describe("Connecting in the demo with a browser", func() {
	var (
		dir  string
		out  *gbytes.Buffer
		stop context.CancelFunc
		code chan int
		keys io.WriteCloser

		flags  []string
		opened string // file to which the browser of these specs writes the address
	)

	BeforeEach(func() {
		flags = nil
		programs := GinkgoT().TempDir()
		opened = filepath.Join(programs, "opened")
		Expect(os.WriteFile(filepath.Join(programs, "xdg-open"), []byte("#!/bin/sh\necho \"$1\" >> "+opened+"\n"),
			0o700)).To(Succeed())
		GinkgoT().Setenv("PATH", programs+":"+os.Getenv("PATH"))
	})
	JustBeforeEach(func() {
		dir = filepath.Join(GinkgoT().TempDir(), "data")
		GinkgoT().Setenv("PASTEPORT_DEMO_TOKEN", "")
		var ctx context.Context
		ctx, stop = context.WithCancel(context.Background())
		out, code = gbytes.NewBuffer(), make(chan int, 1)
		typed, keyboard := io.Pipe()
		keys = keyboard
		go func() {
			left := cli.Run(ctx, append([]string{"demo", "--addr", "127.0.0.1:0", "--data", dir}, flags...),
				typed, out, out)
			_ = out.Close()
			code <- left
		}()
		DeferCleanup(func() {
			stop()
			Expect(keys.Close()).To(Succeed())
			var ended int
			Eventually(code).WithTimeout(10 * time.Second).Should(Receive(&ended))
			Expect(ended).To(Equal(0))
		})
		Eventually(out).WithTimeout(10 * time.Second).Should(gbytes.Say("Ctrl-C ends the demo"))
	})

	read := func(response *http.Response, err error) (page []byte) {
		GinkgoHelper()
		Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		page, err = io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		return page
	}
	newest := func() string {
		GinkgoHelper()
		answer, err := direct.Get(found(address, out.Contents()))
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Body.Close()).To(Succeed())
		Expect(answer.StatusCode).To(Equal(http.StatusFound))
		return answer.Header.Get("Location")
	}
	answer := func(address, decision string) string {
		GinkgoHelper()
		page := read(web.Get(address))
		form := url.Values{"ticket": {found(ticket, page)}, "decision": {decision},
			"bearer_token": {found(token, out.Contents())}}
		return string(read(web.PostForm(found(action, page), form)))
	}

	Context("with --open", func() {
		BeforeEach(func() { flags = []string{"--open"} })

		It("opens the short address in the browser, once", func() {
			expected := found(address, out.Contents()) + "\n"
			Eventually(func() ([]byte, error) {
				return os.ReadFile(opened)
			}).WithTimeout(10 * time.Second).Should(BeEquivalentTo(expected))
			answer(newest(), "deny")
			Eventually(out).WithTimeout(10 * time.Second).Should(gbytes.Say("Your turn(.|\n)*Ctrl-C ends the demo"))
			Expect(os.ReadFile(opened)).To(BeEquivalentTo(expected))
		})
	})

	press := func() {
		GinkgoHelper()
		_, err := io.WriteString(keys, "\n")
		Expect(err).NotTo(HaveOccurred())
	}
	connections := func(form url.Values) []byte {
		GinkgoHelper()
		return read(web.PostForm(found(ending, out.Contents()), form))
	}

	It("shows the reader's own connection, and calls a tool at each Enter, until the reader ends it", func() {
		Expect(answer(newest(), "approve")).To(ContainSubstring("The client has the answer"))
		Eventually(out).WithTimeout(10 * time.Second).Should(gbytes.Say("\nConnected: the client has exchanged"))
		Expect(opened).NotTo(BeAnExistingFile())
		for range 2 {
			press()
			Eventually(out).WithTimeout(10 * time.Second).
				Should(gbytes.Say("Answered: .* list_articles and got \\d+ articles"))
		}
		page := connections(url.Values{"decision": {"show"}, "bearer_token": {found(token, out.Contents())}})
		Expect(grant.FindAll(page, -1)).To(HaveLen(1))
		form := url.Values{"decision": {"end"}, "ticket": {found(ticket, page)}, "grant": {found(grant, page)}}
		Expect(string(connections(form))).To(ContainSubstring("The connection has ended."))
		press()
		Eventually(out).WithTimeout(10 * time.Second).
			Should(gbytes.Say(
				`Refused: .*401 .*invalid_token.*\nThe client has to connect again`))
		Eventually(out).WithTimeout(10 * time.Second).Should(gbytes.Say("Ctrl-C ends the demo"))
		answer(newest(), "approve")
		Eventually(out).WithTimeout(10 * time.Second).Should(gbytes.Say("\nConnected"))
	})

	It("connects with a copied callback URL, as the terminal says", func() {
		Expect(string(out.Contents())).
			To(ContainSubstring(`"My app runs on another computer" shows an address to copy instead`))
		page := answer(newest(), "approve_elsewhere")
		Expect(page).To(ContainSubstring("One step left"))
		Expect(string(read(web.Get(html.UnescapeString(found(copied, []byte(page))))))).
			To(ContainSubstring("The client has the answer"))
		Eventually(out).WithTimeout(10 * time.Second).Should(gbytes.Say("\nConnected"))
	})

	It("shows a refusal and prints another address, which works", func() {
		first := newest()
		answer(first, "deny")
		Eventually(out).WithTimeout(10 * time.Second).Should(gbytes.Say("\nNot connected: .*access_denied"))
		Eventually(out).WithTimeout(10 * time.Second).Should(gbytes.Say("Ctrl-C ends the demo"))
		Expect(newest()).NotTo(Equal(first))
		answer(newest(), "approve")
		Eventually(out).WithTimeout(10 * time.Second).Should(gbytes.Say("\nConnected"))
	})

	DescribeTable("is not connected by", func(state, why string) {
		asked, err := url.Parse(newest())
		Expect(err).NotTo(HaveOccurred())
		forged := url.Values{"code": {"made-up"}, "state": {cmp.Or(state, asked.Query().Get("state"))},
			"iss": {asked.Scheme + "://" + asked.Host}}
		read(web.Get(asked.Query().Get("redirect_uri") + "?" + forged.Encode()))
		Eventually(out).WithTimeout(10 * time.Second).Should(gbytes.Say("\nNot connected: .*" + why))
		Eventually(out).WithTimeout(10 * time.Second).Should(gbytes.Say("Ctrl-C ends the demo"))
	},
		Entry("the answer to another address", "another", "state"),
	)
})
