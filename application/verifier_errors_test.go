package application

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// ofFields is a verifier of all fields.
type ofFields struct{ site }

func (f ofFields) VerifyFields(ctx context.Context, values map[string]string) (oauth.Principal, error) {
	return f.site(ctx, values["key"]+" "+values["pin"])
}

var _ = Describe("Logging the errors of a host", Label("J17", "B9", "B15"), func() {
	const token = "cms_4711/ä+secret=="
	var log *gbytes.Buffer
	BeforeEach(func() { log = gbytes.NewBuffer() })
	// fail calls a verifier and returns the refusal. The log is in log.
	fail := func(ctx context.Context, fields credential.Fields, pasted map[string]string,
		verifier oauth.BearerVerifier) error {
		GinkgoHelper()
		host, err := oauth.ParseHostFields(fields.OrSingle(), func(name string) string { return pasted[name] })
		Expect(err).NotTo(HaveOccurred())
		settings := &oauth.Settings{Config: oauth.Config{Limits: oauth.DefaultLimits(), HostFields: fields}}
		ports := Ports{Logger: slog.New(slog.NewTextHandler(log, nil))}
		_, err = newVerifierGuard(verifier, settings, ports).verifyPasted(ctx, host)
		kind, _ := oauth.KindOf(err)
		Expect(kind).To(Equal(oauth.HostTokenNotVerifiable))
		return err
	}
	failWith := func(ctx context.Context, err error) error {
		GinkgoHelper()
		return fail(ctx, nil, map[string]string{"token": token},
			site(func(context.Context, string) (oauth.Principal, error) {
				return oauth.Principal{}, err
			}))
	}

	It("replaces the token in the text", func(ctx SpecContext) {
		err := failWith(ctx, errors.New("no answer for <"+url.QueryEscape(token)+">"))
		Expect(log.Contents()).
			To(ContainSubstring(
				`msg="the site's verifier failed" type=*errors.errorString error="no answer for <[redacted]>"`))
		Expect(err).NotTo(MatchError(ContainSubstring("no answer")), "the trace has the type only")
	})

	It("replaces every secret field", Label("B23"), func(ctx SpecContext) {
		fields := credential.Fields{{Name: "user"}, {Name: "key", Secret: true}, {Name: "pin", Secret: true}}
		_ = fail(ctx, fields, map[string]string{"user": "ada", "key": "key-of-ada", "pin": "key-of-ada-and-more"},
			ofFields{site(func(_ context.Context, both string) (oauth.Principal, error) {
				return oauth.Principal{}, errors.New("ada: " + both)
			})})
		Expect(log.Contents()).To(ContainSubstring(`error="ada: [redacted] [redacted]"`))
	})

	DescribeTable("leaves out a text in which the token cannot be found", func(ctx SpecContext, token, text string) {
		_ = fail(ctx, nil, map[string]string{"token": token},
			site(func(context.Context, string) (oauth.Principal, error) {
				return oauth.Principal{}, errors.New(text)
			}))
		Expect(log.Contents()).
			To(And(ContainSubstring("type=*errors.errorString"), ContainSubstring("left out"),
				Not(ContainSubstring("some words"))))
	},
		Entry("because it is short", "7 chars", "some words"),
		Entry("because it is not UTF-8", "not UTF-8\xff\xfe", "some words"),
		Entry("because the text is long", token, "some words"+string(make([]byte, 1<<17))),
	)

	It("cuts a long text", func(ctx SpecContext) {
		_ = failWith(ctx, errors.New(string(make([]byte, 3000))+token))
		Expect(len(log.Contents())).To(BeNumerically("<", 2048*len(`\x00`)+200))
	})

	It("logs the type and the stack of a panic, and not its value", func(ctx SpecContext) {
		err := fail(ctx, nil, map[string]string{"token": token}, site(panicking))
		Expect(log.Contents()).
			To(And(ContainSubstring("type=*url.Error"), ContainSubstring("application.panicking"),
				ContainSubstring("verifier_errors_test.go:")))
		Expect(log.Contents()).NotTo(Or(ContainSubstring("4711"), ContainSubstring("0x")))
		Expect(err).To(MatchError(And(ContainSubstring("panicked with a value of type *url.Error"),
			Not(ContainSubstring("application.panicking")))))
	})

	It("has the text of VerifierUnavailable in the refusal, without the token", func(ctx SpecContext) {
		err := failWith(ctx, fmt.Errorf("about %s: %w", token, oauth.VerifierUnavailable("no answer for "+token)))
		Expect(err).To(MatchError(HaveSuffix("no answer for [redacted]")))
		Expect(log.Contents()).To(BeEmpty())
	})

	It("logs nothing about an unknown token", func(ctx SpecContext) {
		guard := newGuard(site(func(context.Context, string) (oauth.Principal, error) {
			return oauth.Principal{}, oauth.ErrUnknownBearer
		}))
		guard.logger = slog.New(slog.NewTextHandler(log, nil))
		_, err := guard.verify(ctx, oauth.HostToken{}, func() {})
		Expect(err).To(HaveOccurred())
		Expect(log.Contents()).To(BeEmpty())
	})
})

func panicking(_ context.Context, token string) (oauth.Principal, error) {
	panic(&url.Error{Op: "Get", URL: token, Err: errors.New(token)})
}
