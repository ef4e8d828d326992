package features_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
)

const (
	workers = 5 // more from one address at the same moment would count as guessing
	family  = 3 // connections per worker
)

// Crashing is a service on one folder and one address that is killed repeatedly under the load of a
// few workers.
type Crashing struct {
	*World
	client  *Client
	run     *gexec.Session
	binary  Binary
	chance  *rand.Rand
	workers [][]*Connection
	graves  []*Connection
	doubts  int // interrupted requests with an unknown outcome
	answers atomic.Int64
	enough  int64 // number of responses before the kill
	killed  atomic.Bool
}

// NewCrashing prepares a service that has not been started yet.
func NewCrashing(binary Binary) *Crashing {
	GinkgoHelper()
	free := must(net.Listen("tcp", "127.0.0.1:0"))
	Expect(free.Close()).To(Succeed())
	world := &World{
		Issuer:  "http://" + free.Addr().String(),
		Dir:     filepath.Join(GinkgoT().TempDir(), "site"),
		Token:   "chosen-by-the-editor",
		Clients: NewClientSite(),
	}
	if worldsOn != "" {
		world.Database = databaseServers[worldsOn].database()
	}
	seed := uint64(GinkgoRandomSeed())
	return &Crashing{
		World:   world,
		client:  world.NewClient(),
		binary:  binary,
		chance:  rand.New(rand.NewPCG(seed, seed)),
		workers: make([][]*Connection, workers),
	}
}

// Start runs the service on the folder that the last crash left; more are flags.
func (c *Crashing) Start(more ...string) {
	GinkgoHelper()
	environment := []string{"SSL_CERT_FILE=" + c.Clients.Certificate(), tokenVariable + "=" + c.Token}
	if c.Database != "" {
		environment = append(environment, "PASTEPORT_DATABASE="+c.Database)
	}
	args := append([]string{"serve", "--dev", "--addr", c.Issuer[len("http://"):], "--admin-addr", "off", "--data",
		c.Dir}, more...)
	c.run = c.binary.Run(environment, args...)
	Eventually(c.run.Out).WithTimeout(patience).WithPolling(time.Millisecond).Should(gbytes.Say("serving"))
}

// CrashUnderLoad runs the workers until one of them kills the service after a random number of
// responses.
func (c *Crashing) CrashUnderLoad(ctx context.Context) {
	GinkgoHelper()
	c.answers.Store(0)
	c.killed.Store(false)
	c.enough = 20 + c.chance.Int64N(40)
	var load sync.WaitGroup
	for i := range c.workers {
		chance := rand.New(rand.NewPCG(c.chance.Uint64(), 0))
		load.Go(func() {
			defer GinkgoRecover()
			for c.work(ctx, i, chance) {
			}
		})
	}
	load.Wait()
	c.kill()
	c.run.Wait(patience)
	noRedirects.CloseIdleConnections()
}

func (c *Crashing) kill() {
	c.killed.Store(true)
	c.run.Kill()
}

// work runs one step of one connection and reports whether the service responded.
func (c *Crashing) work(ctx context.Context, worker int, chance *rand.Rand) bool {
	alive := slices.DeleteFunc(slices.Clone(c.workers[worker]), func(connection *Connection) bool {
		return connection.over
	})
	if len(alive) < family {
		alive = append(alive, &Connection{Client: c.client})
		c.workers[worker] = append(c.workers[worker], alive[len(alive)-1])
	}
	if !alive[chance.IntN(len(alive))].step(ctx, chance) {
		Expect(c.killed.Load()).To(BeTrue(), "the service does not respond although it was not killed")
		return false
	}
	if c.answers.Add(1) == c.enough {
		c.kill()
	}
	return true
}

// Settle compares the responses to the workers with the state of the service after the crash, and
// removes ended connections.
func (c *Crashing) Settle(ctx context.Context) {
	GinkgoHelper()
	for i, mine := range c.workers {
		var alive []*Connection
		for _, connection := range mine {
			if connection.doubt != none {
				c.doubts++
			}
			connection.settle(ctx)
			if !connection.over && connection.spent != "" && c.chance.IntN(4) == 0 {
				connection.replay(ctx)
			}
			if connection.over {
				c.graves = append(c.graves, connection)
			} else {
				alive = append(alive, connection)
			}
		}
		c.workers[i] = alive
	}
}

// send is Send for a service that may be dead: it reports whether there was a complete response.
func send(r *http.Request) (answer Response, whole bool) {
	reply, err := noRedirects.Do(r)
	if err != nil {
		return Response{}, false
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	return Response{reply, string(text)}, err == nil
}

var _ = Describe("Being killed", Label("crash", "I19", "I14", "D20", "E6", "H5", "stores"), func() {
	var binary Binary
	BeforeEach(func() { binary = BuildBinary() })

	DescribeTable("under load loses no acknowledged write, spends no code twice, and opens its file again",
		func(ctx SpecContext, crashes, proofs int) {
			service := NewCrashing(binary)
			for range crashes {
				service.Start()
				service.Settle(ctx)
				service.CrashUnderLoad(ctx)
			}
			service.Start()
			service.Settle(ctx)
			Expect(service.doubts).To(BeNumerically(">=", proofs), "the load was too light to prove anything")
			Expect(len(service.graves)).To(BeNumerically(">=", proofs))
			for _, grave := range service.graves {
				grave.expectOver(ctx)
			}
			Expect(service.run.Terminate().Wait(patience).ExitCode()).To(Equal(0))

			AddReportEntry("kills", fmt.Sprintf("%d kills, %d requests without an answer, %d connections over",
				crashes, service.doubts, len(service.graves)))
			if service.Database != "" {
				return
			}
			var verdict string
			Expect(service.database().QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&verdict)).To(Succeed())
			Expect(verdict).To(Equal("ok"))
		}, Entry("five times", Label("long"), 5, 1, SpecTimeout(5*time.Minute)),
		Entry("fifty times", 50, 51, Label("soak"), SpecTimeout(15*time.Minute)))
})
