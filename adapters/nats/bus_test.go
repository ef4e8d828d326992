package nats_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/adapters/nats"
	"github.com/pasteport/pasteport/domain/oauth"
)

const patience = 20 * time.Second

// broker is a NATS server in this process.
type broker struct{ *server.Server }

// startBroker starts a broker that ends with the spec, on a free port unless options name one.
func startBroker(options server.Options) broker {
	GinkgoHelper()
	options.Host, options.NoSigs = "127.0.0.1", true
	if options.Port == 0 {
		options.Port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&options)
	Expect(err).NotTo(HaveOccurred())
	s.Start()
	Expect(s.ReadyForConnections(patience)).To(BeTrue())
	DeferCleanup(s.Shutdown)
	return broker{s}
}

func (b broker) port() int { return b.Addr().(*net.TCPAddr).Port }

func (b broker) stop() {
	b.Shutdown()
	b.WaitForShutdown()
}

// open connects a bus that ends with the spec.
func open(address string) *nats.Bus {
	GinkgoHelper()
	bus, err := nats.Open(address, slog.New(slog.DiscardHandler))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(bus.Close)
	return bus
}

func shout(message []byte, answer func([]byte)) { answer(bytes.ToUpper(message)) }

var _ = Describe("Sending messages over NATS", Label("R1", "R4", "R5"), func() {
	var b broker
	BeforeEach(func() { b = startBroker(server.Options{}) })

	It("delivers a message to the listener at the address, and returns the answer", func(ctx SpecContext) {
		here, there := open(b.ClientURL()), open(b.ClientURL())
		Expect(there.Listen("there", shout)).To(Succeed())
		Expect(here.Ask(ctx, "there", []byte("hello"))).To(Equal([]byte("HELLO")))
		large := bytes.Repeat([]byte("x"), 512<<10)
		answer, err := here.Ask(ctx, "there", large)
		Expect(err).NotTo(HaveOccurred())
		Expect(answer).To(HaveLen(len(large)))
	})

	It("handles one message at a time", func(ctx SpecContext) {
		here, there := open(b.ClientURL()), open(b.ClientURL())
		taken, goOn := make(chan struct{}, 8), make(chan struct{})
		Expect(there.Listen("there", func(message []byte, answer func([]byte)) {
			taken <- struct{}{}
			<-goOn
			answer(message)
		})).To(Succeed())
		var all sync.WaitGroup
		for range cap(taken) {
			all.Go(func() {
				defer GinkgoRecover()
				Expect(here.Ask(ctx, "there", []byte("x"))).To(Equal([]byte("x")))
			})
		}
		Eventually(taken).WithContext(ctx).WithTimeout(patience).Should(HaveLen(1))
		Consistently(taken, "100ms").Should(HaveLen(1))
		close(goOn)
		all.Wait()
		Expect(taken).To(HaveLen(cap(taken)))
	})

	It("returns each answer without waiting for earlier ones", func(ctx SpecContext) {
		here, there := open(b.ClientURL()), open(b.ClientURL())
		second := make(chan struct{})
		Expect(there.Listen("there", func(message []byte, answer func([]byte)) {
			if string(message) == "second" {
				close(second)
				answer(message)
				return
			}
			go func() {
				<-second
				answer(message)
			}()
		})).To(Succeed())
		var both sync.WaitGroup
		both.Go(func() {
			defer GinkgoRecover()
			Expect(here.Ask(ctx, "there", []byte("first"))).To(Equal([]byte("first")))
		})
		Expect(here.Ask(ctx, "there", []byte("second"))).To(Equal([]byte("second")))
		both.Wait()
	})

	It("returns oauth.ErrNotFound immediately without a listener", func(ctx SpecContext) {
		here, there := open(b.ClientURL()), open(b.ClientURL())
		_, err := here.Ask(ctx, "there", nil)
		Expect(err).To(MatchError(oauth.ErrNotFound))
		Expect(there.Listen("there", shout)).To(Succeed())
		there.Close()
		Eventually(func() error {
			ask, cancel := context.WithTimeout(ctx, time.Second) // the closing listener may still receive the message
			defer cancel()
			_, err := here.Ask(ask, "there", nil)
			return err
		}).WithContext(ctx).WithTimeout(patience).Should(MatchError(oauth.ErrNotFound))
	})

	It("ends a request with its context", func(ctx SpecContext) {
		here, there := open(b.ClientURL()), open(b.ClientURL())
		Expect(there.Listen("there", func([]byte, func([]byte)) {})).To(Succeed())
		ask, cancel := context.WithCancel(ctx)
		cancel()
		_, err := here.Ask(ask, "there", nil)
		Expect(err).To(MatchError(context.Canceled))
	})

	It("reports an outage, reconnects, and returns ErrSettling until other replicas can have reconnected",
		func(ctx SpecContext) {
			here, there := open(b.ClientURL()), open(b.ClientURL())
			Expect(there.Listen("there", shout)).To(Succeed())
			Expect(here.Ping(ctx)).To(Succeed())
			port := b.port()
			b.stop()
			Eventually(here.Ping).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).
				Should(MatchError(ContainSubstring("the bus is reconnecting")))
			_, err := here.Ask(ctx, "there", nil)
			Expect(err).To(HaveOccurred())
			Expect(err).NotTo(MatchError(oauth.ErrNotFound))

			startBroker(server.Options{Port: port})
			Eventually(here.Ping).WithContext(ctx).WithArguments(ctx).WithTimeout(patience).Should(Succeed())
			_, err = here.Ask(ctx, "unused", nil)
			Expect(err).To(MatchError(nats.ErrSettling))
			Eventually(func() ([]byte, error) {
				ask, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return here.Ask(ask, "there", []byte("again"))
			}).WithContext(ctx).WithTimeout(patience).Should(Equal([]byte("AGAIN")))
			Eventually(func() error {
				_, err := here.Ask(ctx, "unused", nil)
				return err
			}).WithContext(ctx).WithTimeout(patience).Should(MatchError(oauth.ErrNotFound))
		})
})

var _ = Describe("Connecting to NATS", Label("R5"), func() {
	It("reports the error without the password", func() {
		guarded := startBroker(server.Options{Username: "ann", Password: "the-right-one"})
		at := "127.0.0.1:" + strconv.Itoa(guarded.port())
		open("nats://ann:the-right-one@" + at)
		for _, address := range []string{"nats://ann:a-wrong-one@" + at, "nats://ann:a-wrong-one@127.0.0.1:1",
			"nats://ann:a-wrong-one@127.0.0.1:1,nats://ann:a-wrong-one@" + at} {
			_, err := nats.Open(address, slog.New(slog.DiscardHandler))
			Expect(err).To(MatchError(And(ContainSubstring("connecting to the bus at nats://127.0.0.1:"),
				Not(ContainSubstring("wrong")), Not(ContainSubstring("ann")))))
		}
		for _, address := range []string{"nats://ann:a-wrong-one@%zz", "nats://ann:7/a-wrong-one@" + at,
			"nats://ann:7#a-wrong-one@" + at} {
			_, err := nats.Open(address, slog.New(slog.DiscardHandler))
			Expect(err).To(MatchError(And(ContainSubstring("is not the URL of a NATS server"),
				Not(ContainSubstring("wrong")))))
		}
	})

	It("refuses a server with a smaller max_payload", func() {
		small := startBroker(server.Options{MaxPayload: 1000})
		_, err := nats.Open(small.ClientURL(), slog.New(slog.DiscardHandler))
		Expect(err).To(MatchError(ContainSubstring("its max_payload is 1000: set it to 524288 or more")))
	})

	It("does not log the password later", func(ctx SpecContext) {
		var log strings.Builder
		var mu sync.Mutex
		guarded := startBroker(server.Options{Username: "ann", Password: "the-right-one"})
		bus, err := nats.Open("nats://ann:the-right-one@127.0.0.1:"+strconv.Itoa(guarded.port()),
			slog.New(slog.NewTextHandler(writer(func(p []byte) {
				mu.Lock()
				defer mu.Unlock()
				log.Write(p)
			}), nil)))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(bus.Close)
		guarded.stop()
		said := func() string {
			mu.Lock()
			defer mu.Unlock()
			return log.String()
		}
		Eventually(said).WithContext(ctx).WithTimeout(patience).Should(ContainSubstring("the bus is disconnected"))
		Expect(said()).NotTo(ContainSubstring("the-right-one"))
	})
})

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
