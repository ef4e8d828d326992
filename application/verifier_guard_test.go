package application

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"

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

// mostCalls is the default number of calls of a verifier at once.
var mostCalls = int64(oauth.DefaultLimits().MaxVerifications)

// newGuard guards a verifier of one token.
func newGuard(verifier oauth.BearerVerifier) verifierGuard {
	return newVerifierGuard(verifier, &oauth.Settings{Config: oauth.Config{Limits: oauth.DefaultLimits()}},
		Ports{Logger: slog.New(slog.DiscardHandler)})
}

var _ = Describe("Verifying a host token", Label("B8", "B9", "B15", "J7"), func() {
	host, hostErr := oauth.ParseHostToken("host-token")
	BeforeEach(func() { Expect(hostErr).NotTo(HaveOccurred()) })

	DescribeTable("describes the mistake of a verifier that",
		Label("H3", "B24"), func(ctx SpecContext, expected oauth.Kind, said string, answer site) {
			_, err := newGuard(answer).verify(ctx, host, func() {})
			kind, _ := oauth.KindOf(err)
			Expect(kind).To(Equal(expected))
			why := errors.Unwrap(err)
			Expect(why).To(MatchError(And(ContainSubstring(said), Not(ContainSubstring("host-token")))))
		},
		Entry("returns the token as the subject", oauth.MisconfiguredVerifier, "the token itself",
			site(func(_ context.Context, token string) (oauth.Principal, error) {
				return oauth.Principal{Subject: "user:" + token}, nil
			})),
		Entry("returns the token as a role", oauth.MisconfiguredVerifier, "the token itself",
			site(func(_ context.Context, token string) (oauth.Principal, error) {
				return oauth.Principal{Subject: "ada", Roles: []string{"editor", token}}, nil
			})),
		Entry("returns thousands of roles", oauth.MisconfiguredVerifier, "the roles are longer than 8192 bytes",
			site(func(context.Context, string) (oauth.Principal, error) {
				return oauth.Principal{Subject: "ada", Roles: slices.Repeat([]string{"editor"}, 2000)}, nil
			})),
		Entry("returns an empty role", oauth.MisconfiguredVerifier, "a role is empty",
			site(func(context.Context, string) (oauth.Principal, error) {
				return oauth.Principal{Roles: []string{""}}, nil
			})),
		Entry("panics", oauth.HostTokenNotVerifiable, "panicked",
			site(func(context.Context, string) (oauth.Principal, error) {
				panic("x")
			})),
		Entry("explains its outage", oauth.HostTokenNotVerifiable, "is restarting",
			site(func(_ context.Context, token string) (oauth.Principal, error) {
				return oauth.Principal{},
					fmt.Errorf("asking about %s: %w", token, oauth.VerifierUnavailable("the database is restarting"))
			})),
	)

	DescribeTable("survives a verifier that", func(ctx SpecContext, kind oauth.Kind, answer site) {
		_, err := newGuard(answer).verify(ctx, host, func() {})
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
		Entry("fails, naming the token", oauth.HostTokenNotVerifiable,
			site(func(_ context.Context, token string) (oauth.Principal, error) {
				return oauth.Principal{}, errors.New("no answer for " + token)
			})),
		Entry("takes too long, naming the token", oauth.HostTokenNotVerifiable,
			site(func(_ context.Context, token string) (oauth.Principal, error) {
				return oauth.Principal{}, fmt.Errorf("asking /introspect?token=%s: %w", token, context.DeadlineExceeded)
			})),
		Entry("panics with the token", oauth.HostTokenNotVerifiable,
			site(func(_ context.Context, token string) (oauth.Principal, error) {
				panic(token)
			})),
	)

	It("does not wait for a verifier that hangs", func(ctx SpecContext) {
		impatient, leave := context.WithCancel(ctx)
		hanging := make(chan struct{})
		DeferCleanup(func() { close(hanging) })
		_, err := newGuard(site(func(context.Context, string) (oauth.Principal, error) {
			leave()
			<-hanging
			return oauth.Principal{}, nil
		})).verify(impatient, host, func() {})
		kind, _ := oauth.KindOf(err)
		Expect(kind).To(Equal(oauth.HostTokenNotVerifiable))
	})

	It("calls another verifier while one hangs", Label("U3"), func(ctx SpecContext) {
		hanging, kind := oauth.NewResource("https://cms.example/hanging"), oauth.NewResource("https://cms.example/kind")
		server := NewServer(&oauth.Settings{Config: oauth.Config{Limits: oauth.DefaultLimits()}}, nil,
			Ports{Verifiers: map[oauth.Resource]oauth.BearerVerifier{
				hanging: nil, kind: site(func(context.Context, string) (oauth.Principal, error) {
					return oauth.Principal{Subject: "ada"}, nil
				}),
			}})
		Expect(server.guardFor(hanging).calls.Acquire(ctx, mostCalls)).To(Succeed())
		Expect(server.guardFor(kind).verify(ctx, host, func() {})).To(HaveField("Subject", "ada"))
	})

	It("keeps a quarter of the calls for refreshes while a verifier ignores its context", Label("B20"),
		func(ctx SpecContext) {
			hanging := make(chan struct{})
			DeferCleanup(func() { close(hanging) })
			asked := make(chan context.CancelFunc, 1)
			guard := newVerifierGuard(site(func(_ context.Context, token string) (oauth.Principal, error) {
				if token == "host-token" {
					(<-asked)()
					<-hanging
				}
				return oauth.Principal{Subject: "ada"}, nil
			}), &oauth.Settings{Config: oauth.Config{Limits: oauth.Limits{MaxVerifications: 4}}},
				Ports{Logger: slog.New(slog.DiscardHandler)})
			for range 3 {
				impatient, leave := context.WithCancel(ctx)
				asked <- leave
				_, err := guard.verifyPasted(impatient, host)
				Expect(err).To(HaveOccurred())
			}
			impatient, leave := context.WithTimeout(ctx, 50*time.Millisecond)
			defer leave()
			asked <- leave
			_, err := guard.verifyPasted(impatient, host)
			Expect(oauth.RefusalOf(err).Rule).To(Equal("B20"))
			granted, err := oauth.ParseHostToken("granted")
			Expect(err).NotTo(HaveOccurred())
			Expect(guard.verify(ctx, granted, func() {})).To(HaveField("Subject", "ada"))
		})

	It("makes no more calls while too many hang", func(ctx SpecContext) {
		hanging := make(chan struct{})
		DeferCleanup(func() { close(hanging) })
		asked := make(chan context.CancelFunc, 1)
		var calls atomic.Int32
		verifier := newGuard(site(func(context.Context, string) (oauth.Principal, error) {
			calls.Add(1)
			(<-asked)()
			<-hanging
			return oauth.Principal{}, nil
		}))
		for range mostCalls {
			impatient, leave := context.WithCancel(ctx)
			asked <- leave
			_, err := verifier.verify(impatient, host, func() {})
			Expect(err).To(HaveOccurred())
		}
		impatient, leave := context.WithTimeout(ctx, 50*time.Millisecond)
		defer leave()
		_, err := verifier.verify(impatient, host, func() {})
		kind, _ := oauth.KindOf(err)
		Expect(kind).To(Equal(oauth.HostTokenNotVerifiable))
		Expect(calls.Load()).To(BeEquivalentTo(mostCalls))
	})
})
