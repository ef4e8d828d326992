package replica

import "context"

// Bus carries messages of up to MaxMessage bytes between the replicas of a service (R1). They are sealed: the broker can neither read nor forge them (R3).
type Bus interface {
	// Listen calls take for each message to the address, one after the other, so that a flood of messages does not pile up. take returns soon,
	// and calls answer at most once, then or later. It goes on until the bus is closed.
	Listen(address string, take func(message []byte, answer func([]byte))) error
	// Ask sends a message and waits for the answer. It fails with oauth.ErrNotFound when it is certain that there is no listener at the
	// address; every other error is an outage, after which the message may have arrived or not.
	Ask(ctx context.Context, address string, message []byte) (answer []byte, err error)
}

// MaxMessage is the size of the largest message, about half of the default limit of NATS.
const MaxMessage = 512 << 10
