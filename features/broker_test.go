package features_test

import (
	"net"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Broker is a NATS server in this process, and somebody who reads along and may write as well.
type Broker struct {
	*server.Server
	port int

	mu      sync.Mutex
	carried []*nats.Msg
	spy     *nats.Conn
}

// NewBroker starts one that ends with the spec.
func NewBroker() *Broker {
	GinkgoHelper()
	b := &Broker{port: server.RANDOM_PORT}
	b.Start()
	DeferCleanup(func() { b.Stop() })
	return b
}

// Start starts it, again on the same port after Stop.
func (b *Broker) Start() {
	GinkgoHelper()
	var err error
	b.Server, err = server.NewServer(&server.Options{Host: "127.0.0.1", Port: b.port, NoSigs: true})
	Expect(err).NotTo(HaveOccurred())
	b.Server.Start()
	Expect(b.ReadyForConnections(patience)).To(BeTrue())
	b.port = b.Addr().(*net.TCPAddr).Port
}

// Watch begins to read along.
func (b *Broker) Watch() {
	GinkgoHelper()
	var err error
	b.spy, err = nats.Connect(b.ClientURL())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.spy.Close)
	_, err = b.spy.Subscribe(">", func(m *nats.Msg) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.carried = append(b.carried, m)
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(b.spy.Flush()).To(Succeed())
}

// Stop ends it, and with it every connection.
func (b *Broker) Stop() {
	b.Shutdown()
	b.WaitForShutdown()
}

// Carried is all that went over it so far, subjects and payloads.
func (b *Broker) Carried() (texts []string) {
	GinkgoHelper()
	Expect(b.spy.Flush()).To(Succeed())
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.carried {
		texts = append(texts, m.Subject+" "+m.Reply+" "+string(m.Data))
	}
	return texts
}

// Repeat sends everything again that went over it.
func (b *Broker) Repeat() {
	GinkgoHelper()
	Expect(b.spy.Flush()).To(Succeed())
	b.mu.Lock()
	recorded := b.carried
	b.mu.Unlock()
	for _, m := range recorded {
		Expect(b.spy.Publish(m.Subject, m.Data)).To(Succeed())
	}
	Expect(b.spy.Flush()).To(Succeed())
}
