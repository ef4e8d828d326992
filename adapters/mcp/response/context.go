package response

import (
	"context"
)

// responseContext is the context of a request whose response may be ended earlier.
type responseContext struct {
	context.Context
	client   context.Context // ends when the client hangs up
	end      context.CancelCauseFunc
	identity *Identity // nil before Writer.Identify
}

func newContext(client context.Context) *responseContext {
	ctx, end := context.WithCancelCause(client)
	return &responseContext{Context: ctx, client: client, end: end}
}

// Value implements context.Context.
func (c *responseContext) Value(key any) any {
	if key == (identityKey{}) && c.identity != nil {
		return c.identity
	}
	return c.Context.Value(key)
}
