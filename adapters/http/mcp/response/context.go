package response

import "context"

// endableContext is the context of a request whose response may be ended earlier.
type endableContext struct {
	context.Context
	client context.Context // ends when the client hangs up
	end    context.CancelCauseFunc
	who    *Identity // nil until the caller is known
	known  Identity  // what who is then
}

func newEndableContext(client context.Context) *endableContext {
	ctx, end := context.WithCancelCause(client)
	return &endableContext{Context: ctx, client: client, end: end}
}

// Value implements context.Context.
func (c *endableContext) Value(key any) any {
	if key == (identityKey{}) && c.who != nil {
		return c.who
	}
	return c.Context.Value(key)
}
