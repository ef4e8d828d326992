package features_test

import (
	"net"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Broker is a NATS server in this process, and somebody who reads along and may write as well.
type Broker struct {
	*server.Server
	port int

	spy     *nats.Conn
	heard   chan *nats.Msg
	carried []*nats.Msg
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
	b.heard = make(chan *nats.Msg, 100_000) // and no callback, which a flush would not wait for
	_, err = b.spy.ChanSubscribe(">", b.heard)
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
	for _, m := range b.messages() {
		texts = append(texts, m.Subject+" "+m.Reply+" "+string(m.Data))
	}
	return texts
}

// messages waits for what was published before.
func (b *Broker) messages() []*nats.Msg {
	GinkgoHelper()
	Expect(b.spy.Flush()).To(Succeed())
	for range len(b.heard) {
		b.carried = append(b.carried, <-b.heard)
	}
	return b.carried
}

// Repeat sends everything again that went over it.
func (b *Broker) Repeat() {
	GinkgoHelper()
	for _, m := range b.messages() {
		Expect(b.spy.Publish(m.Subject, m.Data)).To(Succeed())
	}
	Expect(b.spy.Flush()).To(Succeed())
}
