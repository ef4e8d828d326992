package application

import (
	"context"
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/features/suite"
)

func TestApplication(t *testing.T) {
	suite.Run(t, "The use cases")
}

type site func(ctx context.Context, token string) (oauth.Principal, error)

func (s site) VerifyBearer(ctx context.Context, token string) (oauth.Principal, error) {
	return s(ctx, token)
}

var _ = Describe("Asking the site about a host token", Label("B8", "B9", "B15", "J7"), func() {
	host, hostErr := oauth.ParseHostToken("host-token")
	BeforeEach(func() { Expect(hostErr).NotTo(HaveOccurred()) })

	It("passes on who stands behind it", func(ctx SpecContext) {
		verifier := newJudge(site(func(_ context.Context, token string) (oauth.Principal, error) {
			return oauth.Principal{Subject: "of " + token[:4]}, nil
		}), oauth.DefaultLimits())
		Expect(verifier.ask(ctx, host)).To(Equal(oauth.Principal{Subject: "of host"}))
	})

	DescribeTable("says in words of its own what is wrong with a site that", Label("H3"), func(ctx SpecContext, said string, answer site) {
		_, err := newJudge(answer, oauth.DefaultLimits()).ask(ctx, host)
		kind, _ := oauth.KindOf(err)
		Expect(kind).To(Equal(oauth.HostTokenNotVerifiable))
		why := errors.Unwrap(err)
		Expect(why).To(MatchError(And(ContainSubstring(said), Not(ContainSubstring("host-token")))))
	},
		Entry("takes the token for the subject", "the token itself", site(func(_ context.Context, token string) (oauth.Principal, error) {
			return oauth.Principal{Subject: "user:" + token}, nil
		})),
		Entry("takes the token for a role", "the token itself", site(func(_ context.Context, token string) (oauth.Principal, error) {
			return oauth.Principal{Subject: "ada", Roles: []string{"editor", token}}, nil
		})),
		Entry("names an empty role", "a role is empty", site(func(context.Context, string) (oauth.Principal, error) {
			return oauth.Principal{Roles: []string{""}}, nil
		})),
		Entry("panics", "panicked", site(func(context.Context, string) (oauth.Principal, error) { panic("x") })),
		Entry("says itself why it cannot tell", "is restarting", site(func(_ context.Context, token string) (oauth.Principal, error) {
			return oauth.Principal{}, fmt.Errorf("asking about %s: %w", token, oauth.CannotTell("the database is restarting"))
		})),
	)

	DescribeTable("survives a site that", func(ctx SpecContext, kind oauth.Kind, answer site) {
		_, err := newJudge(answer, oauth.DefaultLimits()).ask(ctx, host)
		found, _ := oauth.KindOf(err)
		Expect(found).To(Equal(kind))
		var refusal *oauth.Error
		Expect(errors.As(err, &refusal)).To(BeTrue())
		Expect(fmt.Sprintf("%+v %v", refusal, errors.Unwrap(refusal))).NotTo(ContainSubstring("host-token"))
		Expect(err.Error()).NotTo(ContainSubstring("host-token"))
	},
		Entry("does not know it", oauth.WrongHostToken, site(func(context.Context, string) (oauth.Principal, error) {
			return oauth.Principal{}, fmt.Errorf("looking it up: %w", oauth.ErrUnknownBearer)
		})),
		Entry("fails, naming the token", oauth.HostTokenNotVerifiable, site(func(_ context.Context, token string) (oauth.Principal, error) {
			return oauth.Principal{}, errors.New("no answer for " + token)
		})),
		Entry("takes too long, naming the token", oauth.HostTokenNotVerifiable, site(func(_ context.Context, token string) (oauth.Principal, error) {
			return oauth.Principal{}, fmt.Errorf("asking /introspect?token=%s: %w", token, context.DeadlineExceeded)
		})),
		Entry("panics with the token", oauth.HostTokenNotVerifiable, site(func(_ context.Context, token string) (oauth.Principal, error) { panic(token) })),
	)

	It("does not wait for a site that hangs", func(ctx SpecContext) {
		impatient, leave := context.WithCancel(ctx)
		hanging := make(chan struct{})
		DeferCleanup(func() { close(hanging) })
		_, err := newJudge(site(func(context.Context, string) (oauth.Principal, error) {
			leave()
			<-hanging
			return oauth.Principal{}, nil
		}), oauth.DefaultLimits()).ask(impatient, host)
		kind, _ := oauth.KindOf(err)
		Expect(kind).To(Equal(oauth.HostTokenNotVerifiable))
	})

	It("asks another site while one hangs", Label("U3"), func(ctx SpecContext) {
		hanging, kind := oauth.NewResource("https://cms.example/hanging"), oauth.NewResource("https://cms.example/kind")
		server := NewServer(new(oauth.Settings), Ports{Verifiers: map[oauth.Resource]oauth.BearerVerifier{
			hanging: nil, kind: site(func(context.Context, string) (oauth.Principal, error) { return oauth.Principal{Subject: "ada"}, nil }),
		}})
		for range verifyPlaces {
			server.judgeOf(hanging).granted <- struct{}{}
		}
		Expect(server.judgeOf(kind).ask(ctx, host)).To(HaveField("Subject", "ada"))
	})

	It("asks no more once too many questions hang", func(ctx SpecContext) {
		hanging := make(chan struct{})
		DeferCleanup(func() { close(hanging) })
		asked := make(chan context.CancelFunc, 1)
		verifier := newJudge(site(func(context.Context, string) (oauth.Principal, error) {
			(<-asked)()
			<-hanging
			return oauth.Principal{}, nil
		}), oauth.DefaultLimits())
		for range verifyPlaces {
			impatient, leave := context.WithCancel(ctx)
			asked <- leave
			_, err := verifier.ask(impatient, host)
			Expect(err).To(HaveOccurred())
		}
		gone, leave := context.WithCancel(ctx)
		leave()
		_, err := verifier.ask(gone, host)
		kind, _ := oauth.KindOf(err)
		Expect(kind).To(Equal(oauth.HostTokenNotVerifiable))
	})
})
