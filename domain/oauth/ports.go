package oauth

import "context"

// BearerVerifier asks the site about one of its own tokens. ErrUnknownBearer, wrapped or not, means that the token does not
// hold; any other error means that the site cannot tell just now, which never issues and never ends anything (B9, D25).
type BearerVerifier interface {
	VerifyBearer(ctx context.Context, token string) (Principal, error)
}

// ClientDirectory finds what a client publishes under its client_id. It returns the refusals of NewClientMetadata,
// ErrMetadataUnreachable (C41, C42) or ErrMetadataBudget (C45).
type ClientDirectory interface {
	Client(ctx context.Context, id ClientID) (*ClientMetadata, error)
}
