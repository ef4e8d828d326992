// Package broker runs a NATS server inside the specs. A Broker can be stopped and started again on
// its port; after Watch it reports every message that it carried and can repeat them.
package broker

import (
	"net"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// startLimit bounds the wait for a server that starts.
const startLimit = 10 * time.Second

// Broker is a NATS server with a client that reads every message.
type Broker struct {
	*server.Server
	port int

	spy     *nats.Conn
	heard   chan *nats.Msg
	carried []*nats.Msg
}

// New starts a broker; it stops when the spec ends.
func New() *Broker {
	GinkgoHelper()
	b := &Broker{port: server.RANDOM_PORT}
	b.Start()
	DeferCleanup(func() { b.Stop() })
	return b
}

// Start starts the server, on the same port as before a Stop.
func (b *Broker) Start() {
	GinkgoHelper()
	var err error
	b.Server, err = server.NewServer(&server.Options{Host: "127.0.0.1", Port: b.port, NoSigs: true})
	Expect(err).NotTo(HaveOccurred())
	b.Server.Start()
	Expect(b.ReadyForConnections(startLimit)).To(BeTrue())
	b.port = b.Addr().(*net.TCPAddr).Port
}

// Watch begins to record messages.
func (b *Broker) Watch() {
	GinkgoHelper()
	var err error
	b.spy, err = nats.Connect(b.ClientURL())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.spy.Close)
	b.heard = make(chan *nats.Msg, 100_000) // not a callback, because Flush would not wait for it
	_, err = b.spy.ChanSubscribe(">", b.heard)
	Expect(err).NotTo(HaveOccurred())
	Expect(b.spy.Flush()).To(Succeed())
}

// Stop ends the server and every connection.
func (b *Broker) Stop() {
	b.Shutdown()
	b.WaitForShutdown()
}

// Carried returns the messages since Watch, with subject, reply subject and payload.
func (b *Broker) Carried() (texts []string) {
	GinkgoHelper()
	for _, m := range b.messages() {
		texts = append(texts, m.Subject+" "+m.Reply+" "+string(m.Data))
	}
	return texts
}

// messages waits for the messages that were published before the call.
func (b *Broker) messages() []*nats.Msg {
	GinkgoHelper()
	Expect(b.spy.Flush()).To(Succeed())
	for range len(b.heard) {
		b.carried = append(b.carried, <-b.heard)
	}
	return b.carried
}

// Repeat publishes every recorded message again.
func (b *Broker) Repeat() {
	GinkgoHelper()
	for _, m := range b.messages() {
		Expect(b.spy.Publish(m.Subject, m.Data)).To(Succeed())
	}
	Expect(b.spy.Flush()).To(Succeed())
}
