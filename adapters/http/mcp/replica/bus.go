package replica

import "context"

// Bus carries messages of up to MaxMessage bytes between the replicas of a service (R1). They are sealed, so that the broker can neither read nor
// forge them (R3).
type Bus interface {
	// Listen calls receive for each message to the address, one at a time, so that a flood of messages does not pile up, until the bus is closed.
	// receive returns soon, and calls answer at most once, then or later.
	Listen(address string, receive func(message []byte, answer func([]byte))) error
	// Ask sends a message and returns the answer. It fails with oauth.ErrNotFound if the address has no listener. Any other error is an outage,
	// after which the message may have arrived or not.
	Ask(ctx context.Context, address string, message []byte) (answer []byte, err error)
}

// MaxMessage is the maximum size of a message in bytes, half of the default limit of NATS.
const MaxMessage = 512 << 10
