package oauth

import "context"

type requesterKey struct{}

// WithRequester notes the network address on whose behalf work is done, for budgets (C21, D31).
func WithRequester(ctx context.Context, address string) context.Context {
	return context.WithValue(ctx, requesterKey{}, address)
}

// RequesterFrom returns that address; it is empty when nobody in particular asks.
func RequesterFrom(ctx context.Context) string {
	address, _ := ctx.Value(requesterKey{}).(string)
	return address
}
