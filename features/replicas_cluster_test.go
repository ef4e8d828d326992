package features_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/engines"
)

// clusterOperations are the flows, refreshes and revocations of a run.
const clusterOperations = 20_000

// Racer connects, refreshes and revokes at several replicas at once, and repeats what failed
// because of the database.
type Racer struct {
	*Client
	fleet *Fleet
	log   *raceLog
}

// raceLog is what all racers of a run have seen.
type raceLog struct {
	sync.Mutex
	done, failed int
	lastFailure  time.Time
	kept         []Tokens // of grants that nobody revoked
}

// count adds operations and returns the number of all.
func (l *raceLog) count(operations int) int {
	l.Lock()
	defer l.Unlock()
	l.done += operations
	return l.done
}

func (l *raceLog) failures() int {
	l.Lock()
	defer l.Unlock()
	return l.failed
}

func (l *raceLog) keep(tokens Tokens) {
	l.Lock()
	defer l.Unlock()
	l.kept = append(l.kept, tokens)
}

func (l *raceLog) fail() {
	l.Lock()
	defer l.Unlock()
	l.failed, l.lastFailure = l.failed+1, time.Now()
}

// answered repeats a request until the answer is not that of an outage.
func (r *Racer) answered(ctx context.Context, request func() Response) Response {
	GinkgoHelper()
	for ctx.Err() == nil {
		answer := request()
		if answer.StatusCode < http.StatusInternalServerError {
			return answer
		}
		r.log.fail()
	}
	Fail("the database is out for too long")
	return Response{}
}

func (r *Racer) at(replica int) *Client {
	client := *r.Client
	client.World = r.fleet.At(replica)
	return &client
}

func (r *Racer) everywhere(ctx context.Context, request func(*Client) Response) []Response {
	GinkgoHelper()
	var turn atomic.Int64
	return atOnce(len(r.fleet.Replicas), func() Response {
		at := r.at(int(turn.Add(1)))
		return r.answered(ctx, func() Response { return request(at) })
	})
}

// connect spends a code at all replicas at once. The code is lost when the database failed during
// its redemption.
func (r *Racer) connect(ctx context.Context) (tokens Tokens, connected bool) {
	GinkgoHelper()
	page := r.answered(ctx, func() Response { return r.AskFor(ctx, r.Request()) })
	approved := r.answered(ctx, func() Response { return ReadPage(page).Approve(ctx, r.World.Token) })
	if approved.StatusCode != http.StatusSeeOther {
		Expect(approved.StatusCode).To(Equal(http.StatusTooManyRequests), approved.Text)
		return Tokens{}, false
	}
	form := r.Exchange(approved.Target().Query().Get("code"))
	for _, answer := range r.everywhere(ctx, func(at *Client) Response { return at.Token(ctx, form) }) {
		Expect(answer).To(BeGrantedOrRefused(), answer.Text)
		if answer.StatusCode == http.StatusOK {
			Expect(connected).To(BeFalse(), "a code was spent twice")
			tokens, connected = answer.Tokens(), true
		}
	}
	return tokens, connected
}

// refresh presents one token to all replicas at once.
func (r *Racer) refresh(ctx context.Context, tokens Tokens) Tokens {
	GinkgoHelper()
	newest := map[string]Tokens{}
	for _, answer := range r.everywhere(ctx, func(at *Client) Response {
		return at.Token(ctx, at.Refresh(tokens.Refresh))
	}) {
		Expect(answer.StatusCode).To(Equal(http.StatusOK), answer.Text)
		newest[answer.Tokens().Refresh] = answer.Tokens()
	}
	Expect(newest).To(HaveLen(1))
	for _, tokens = range newest {
	}
	return tokens
}

// revoke ends a grant at one replica while the others refresh it, and checks that no replica
// accepts its tokens afterwards. The others may keep a grant for a second.
func (r *Racer) revoke(ctx context.Context, tokens Tokens, replica int) {
	GinkgoHelper()
	racing := make(chan Response, 1)
	go func() {
		defer GinkgoRecover()
		racing <- r.answered(ctx, func() Response { return r.at(replica+1).Token(ctx, r.Refresh(tokens.Refresh)) })
	}()
	revoked := r.answered(ctx, func() Response { return r.at(replica).Revoke(ctx, tokens.Refresh) })
	Expect(revoked.StatusCode).To(Equal(http.StatusOK), revoked.Text)
	Eventually(func() []Response {
		return r.everywhere(ctx, func(at *Client) Response { return at.World.Call(ctx, tokens.Access) })
	}).WithContext(ctx).WithTimeout(patience).
		Should(HaveEach(HaveField("StatusCode", http.StatusUnauthorized)), "used after its revocation was answered")
	raced := <-racing
	Expect(raced).To(BeGrantedOrRefused(), raced.Text)
	if raced.StatusCode == http.StatusOK {
		Eventually(func() int { return r.at(replica+2).World.Call(ctx, raced.Tokens().Access).StatusCode }).
			WithContext(ctx).WithTimeout(patience).ShouldNot(Equal(http.StatusOK))
	}
}

// race runs until enough operations are done.
func (r *Racer) race(ctx context.Context) {
	defer GinkgoRecover()
	for round := 0; r.log.count(0) < clusterOperations && ctx.Err() == nil; round++ {
		tokens, connected := r.connect(ctx)
		if !connected {
			continue
		}
		tokens = r.refresh(ctx, r.refresh(ctx, tokens))
		if round%10 == 9 {
			r.log.keep(tokens)
			r.log.count(3)
			continue
		}
		r.revoke(ctx, tokens, round)
		r.log.count(4)
	}
}

// raceThrough races until enough operations are done, and lets the database fail and recover in
// between.
func (f *Fleet) raceThrough(ctx context.Context, fail, recover func()) {
	GinkgoHelper()
	published, log := f.NewClient(), &raceLog{}
	var racing sync.WaitGroup
	for range logins {
		racer := &Racer{published, f, log}
		racing.Go(func() { racer.race(ctx) })
	}
	ended := make(chan struct{})
	go func() { racing.Wait(); close(ended) }()
	until := func(operations int) {
		GinkgoHelper()
		Eventually(func() (int, error) {
			select {
			case <-ended:
				return log.count(0), StopTrying("every racer has ended")
			default:
				return log.count(0), nil
			}
		}).WithContext(ctx).Should(BeNumerically(">", operations))
	}
	until(clusterOperations / 3)
	before, failing := log.failures(), time.Now()
	fail()
	until(clusterOperations / 2)
	recovering := time.Now()
	recover()
	<-ended
	Expect(log.kept).NotTo(BeEmpty())
	racer := &Racer{published, f, log}
	fewAtOnce(len(log.kept), logins, func(i int) {
		for _, answer := range racer.everywhere(ctx, func(at *Client) Response {
			return at.World.Call(ctx, log.kept[i].Access)
		}) {
			Expect(answer.StatusCode).To(Equal(http.StatusOK), "an answered token was lost")
		}
		racer.refresh(ctx, log.kept[i])
	})
	AddReportEntry("the failure", fmt.Sprintf("%d operations, %d grants kept; "+
		"%d requests failed before it and %d after, the last one %s after it and %s after the recovery",
		log.done, len(log.kept), before, log.failed-before, log.lastFailure.Sub(failing),
		log.lastFailure.Sub(recovering)))
}

var _ = Describe("A cluster of database servers", Label("cluster", "engines", "I22", "I14", "E9"), func() {
	BeforeEach(func() {
		if os.Getenv("CLUSTER") == "" {
			Skip(".ci/run cluster runs this")
		}
	})

	It("spends no code twice, loses no answered token and keeps answered revocations "+
		"when a Galera node dies and returns",
		func(ctx SpecContext) {
			cluster := must(engines.Galera(ctx))
			DeferCleanup(cluster.Close)
			newFleet(BuildBinary(), must(cluster.Database(ctx))).raceThrough(ctx, func() {
				Expect(cluster.Nodes[0].End(syscall.SIGKILL)).To(Succeed())
			}, func() {
				Expect(cluster.Nodes[0].Start(ctx)).To(Succeed())
			})
		}, NodeTimeout(time.Hour))

	It("spends no code twice, loses no answered token and keeps answered revocations "+
		"when a synchronous standby of PostgreSQL takes over",
		func(ctx SpecContext) {
			pair := must(engines.NewPair(ctx))
			DeferCleanup(pair.Close)
			database := must(pair.Database(ctx))
			newFleet(BuildBinary(), slices.Repeat([]string{database}, fleetSize)).raceThrough(ctx, func() {
				Expect(pair.Primary.End(syscall.SIGKILL)).To(Succeed())
				Expect(pair.Promote()).To(Succeed())
			}, func() {})
		}, NodeTimeout(time.Hour))
})
