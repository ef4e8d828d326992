package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const redirectURL = "http://127.0.0.1:4324/callback"

// target is the server with the transport and the revision to use.
type target struct {
	server, client, revision string
	sse                      bool
}

// connect returns the negotiated revision.
func (p *program) connect(ctx context.Context) (string, error) {
	transport, err := p.transport()
	if err != nil {
		return "", err
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "goclient", Version: "1.0.0"}, &mcp.ClientOptions{
		LoggingMessageHandler: func(context.Context, *mcp.LoggingMessageRequest) { p.say(word{Heard: "log"}) },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			p.say(word{Heard: "progress", Of: r.Params.ProgressToken})
		},
	})
	p.session, err = client.Connect(context.WithoutCancel(ctx), transport,
		&mcp.ClientSessionOptions{ProtocolVersion: p.target.revision})
	if err != nil {
		return "", err
	}
	return p.session.InitializeResult().ProtocolVersion, nil
}

func (p *program) transport() (mcp.Transport, error) {
	handler, err := p.authorization()
	if err != nil {
		return nil, err
	}
	if p.target.sse {
		return &mcp.SSEClientTransport{Endpoint: p.target.server, HTTPClient: &http.Client{Transport: bearer{handler}}},
			nil
	}
	return &mcp.StreamableClientTransport{Endpoint: p.target.server, OAuthHandler: handler}, nil
}

// authorization holds the tokens for all connections of the program.
func (p *program) authorization() (auth.OAuthHandler, error) {
	if p.handler != nil {
		return p.handler, nil
	}
	config := &auth.AuthorizationCodeHandlerConfig{RedirectURL: redirectURL, RequestRefreshToken: true,
		AuthorizationCodeFetcher: p.browse}
	if p.target.client != "" {
		config.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: p.target.client}
	} else {
		config.DynamicClientRegistrationConfig = registration()
		config.Client = &http.Client{Transport: impatient{}}
	}
	handler, err := auth.NewAuthorizationCodeHandler(config)
	if err != nil {
		return nil, err
	}
	p.handler = handler
	return handler, nil
}

// browse reports the page for the person, and waits until their browser returns.
func (p *program) browse(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	p.say(word{Open: args.URL})
	select {
	case callback := <-p.callbacks:
		back, err := url.Parse(callback)
		if err != nil {
			return nil, err
		}
		query := back.Query()
		return &auth.AuthorizationResult{Code: query.Get("code"), State: query.Get("state"), Iss: query.Get("iss")}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// bearer adds OAuth to HTTP with SSE, which the SDK supports only for its other transport.
type bearer struct{ handler auth.OAuthHandler }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.send(r)
	if err != nil || answer.StatusCode != http.StatusUnauthorized {
		return answer, err
	}
	if err := b.handler.Authorize(r.Context(), r, answer); err != nil {
		return nil, err
	}
	return b.send(r)
}

func (b bearer) send(r *http.Request) (*http.Response, error) {
	source, err := b.handler.TokenSource(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	if r.GetBody != nil {
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	if source != nil {
		token, err := source.Token()
		if err != nil {
			return nil, fmt.Errorf("getting a token: %w", err)
		}
		token.SetAuthHeader(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}
