// Package bootstrap adds OAuth 2.1 to the MCP server of a Go site. A host imports three packages:
// this one, domain/oauth for the Config, and adapters/persistence for the store:
//
//	store, err := persistence.OpenSQLite("oauth.db")
//	config := oauth.Config{Issuer: "https://cms.example.com", VerifyBearer: site.Knows}
//	authz, err := bootstrap.NewOAuthServer(config, store)
//	server := bootstrap.NewMCPServer(tools, bootstrap.WithOAuth(authz))
//	err = server.Register(e)
//
// tools is a *mcp.Server of the official Go SDK and e the site's Echo; a site with net/http, chi or
// Gin calls MCPServer.Handler instead of Register. NewGateway protects an MCP server at a URL, and
// Guard one without the SDK. The examples handle every error; docs/embedding.md has all else.
package bootstrap

import (
	"cmp"
	"context"
	cryptorand "crypto/rand"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	oauthhttp "github.com/pasteport/pasteport/adapters/http"
	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/adapters/jose"
	"github.com/pasteport/pasteport/adapters/journal"
	"github.com/pasteport/pasteport/adapters/limits"
	"github.com/pasteport/pasteport/adapters/mcp/message"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/bootstrap/internal/memory"
	"github.com/pasteport/pasteport/domain/attempt"
	"github.com/pasteport/pasteport/domain/diagnosis"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
	"github.com/pasteport/pasteport/domain/quota"
)

// OAuthServer is the authorization server of one site. Its methods are safe for concurrent use.
type OAuthServer struct {
	server    *application.Server
	endpoints *oauthhttp.Endpoints
	config    oauth.Config
	follow    oauthhttp.Follower
	trace     attempt.Log
	stop      context.CancelFunc
	journal   *journal.Journal
	ended     *endedGrants
	warnOnce  sync.Once // for warnOfMissingLimits, at the first request
	bodies    *message.BodyMemory
	limited   quota.Observer
	calls     quota.RateLimit
	replicas  bool // the store reports that replicas may share it

	registered registrations
	upstreams  sync.Map // the *MCPServer of a gateway, by the URL of its resource
}

// Appearance is the name, colour, logo, help link and wording of the pages.
type Appearance = pages.Appearance

// WithAppearance sets the appearance of the pages. NewOAuthServer reports its mistakes.
func WithAppearance(appearance Appearance) OAuthOption {
	return func(o *oauthOptions) { o.appearance = appearance }
}

// NewOAuthServer returns an authorization server over a store, and starts its background
// work, which Close ends. It reports all mistakes in the config in one error. It fails with
// oauth.ErrOtherSecret when the store was used with another server secret, and when every
// connection in it was made under another issuer. The caller closes the store, after Close.
//
// A store may implement optional interfaces: oauth.SecretKeeper (without it Config needs a Secret),
// oauth.UseRecorder, oauth.EndWatcher, oauth.SharedStore, oauth.SecretVerifier,
// oauth.AuthorizationLister, client.DocumentStore and attempt.Log. Those of a store that is wrapped
// in another type are lost unless the wrapper has them too. The log names the missing ones at level
// info, except the first two; docs/embedding.md describes what each is for.
func NewOAuthServer(config oauth.Config, store oauth.Store, options ...OAuthOption) (*OAuthServer, error) {
	chosen := choose(options)
	config, err := withDefaults(config, store)
	config = config.NamedAfter(chosen.appearance.Name)
	settings, mistakes := config.Settings()
	rules, wrongRules := client.NewRules(config)
	if err = errors.Join(err, mistakes, wrongRules, chosen.appearance.Check(), checkNil(config, chosen)); err != nil {
		return nil, err
	}
	advise(settings, store, config.Logger)
	clients, keys, err := newDirectory(config, rules, store, chosen)
	if err != nil {
		return nil, err
	}
	shared, isShared := store.(oauth.SharedStore)
	authz := &OAuthServer{
		config:   config,
		limited:  chosen.limited,
		calls:    limits.NewRates(),
		bodies:   message.NewBodyMemory(memory.Limit() / 8), // a decoded body uses several times its size
		replicas: isShared && shared.SharedByReplicas(),
	}
	if log, keeps := store.(attempt.Log); keeps {
		authz.trace, authz.journal = log, journal.New(log, config.Logger, config.Now)
		authz.follow.Journal = authz.journal
	}
	witness, _ := store.(oauth.SecretVerifier) // knows under which server secret the store is used
	authz.server = application.NewServer(settings, rules, application.Ports{
		Store:      store,
		Clients:    clients,
		Keys:       keys,
		Assertions: jose.Reader{},
		Verifier:   cmp.Or[oauth.BearerVerifier](config.Verifier, boolVerifier(config.VerifyBearer)),
		Verifiers:  ownVerifiers(config),
		Lanes:      limits.NewLanes(settings.Limits.WrongTokens, config.Now, chosen.limited),
		Rates:      limits.NewRates(),
		Witness:    witness,
		Journal:    authz.follow.Journal,
		OnDecision: chosen.decided,
		Limited:    chosen.limited,
		Now:        config.Now,
		Random:     config.Random,
		Logger:     config.Logger,
	})
	authz.endpoints, err = oauthhttp.New(authz.server, oauthhttp.Options{
		Appearance: chosen.appearance,
		Follow:     authz.follow.Middleware,
		Upstream:   authz.upstreamCondition,
		Logger:     config.Logger,
	})
	authz.start(store, chosen.sweepInterval) // before a check can fail, because Close needs what start sets
	err = errors.Join(err, authz.agreeOnSecret(), authz.server.Operator.CheckIssuer(context.Background()))
	if err != nil {
		authz.Close()
		return nil, err
	}
	return authz, nil
}

// Trace returns the attempts of clients to connect, the newest first; none if the store is not an
// attempt.Log.
func (a *OAuthServer) Trace(ctx context.Context) ([]diagnosis.Attempt, error) {
	if a.trace == nil {
		return nil, nil
	}
	return diagnosis.Read(ctx, a.trace, a.config.Now())
}

// withDefaults sets the clock, the random source, the logger and the store's secret where the
// config has none, and masks tokens in the log. It fails if the store is nil.
func withDefaults(config oauth.Config, store oauth.Store) (oauth.Config, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Random == nil {
		config.Random = cryptorand.Reader
	}
	config.Logger = MaskTokens(cmp.Or(config.Logger, slog.Default()))
	if isNil(store) {
		return config, errors.New(
			"the store is nil: open one, for example with persistence.OpenSQLite(\"oauth.db\"), and look at its error")
	}
	if keeper, keeps := store.(oauth.SecretKeeper); keeps && config.Secrets == nil {
		config.Secrets = keeper
	}
	return config, nil
}

// boolVerifier adapts oauth.Config.VerifyBearer to oauth.BearerVerifier.
type boolVerifier func(token string) bool

func (known boolVerifier) VerifyBearer(_ context.Context, token string) (oauth.Principal, error) {
	if !known(token) {
		return oauth.Principal{}, oauth.ErrUnknownBearer
	}
	return oauth.Principal{}, nil
}

// ownVerifiers returns the verifiers of the additional servers that do not use the verifier of the
// config.
func ownVerifiers(config oauth.Config) map[oauth.Resource]oauth.BearerVerifier {
	own := map[oauth.Resource]oauth.BearerVerifier{}
	for _, server := range config.MoreServers {
		if server.Verifier != nil {
			own[oauth.NewResource(server.Resource)] = server.Verifier
		}
	}
	return own
}

// Welcome answers a browser with a page that tells people how to connect an app to the MCP servers.
// The endpoints of MCP show it too; mount it where people may look for it, such as "/".
func (a *OAuthServer) Welcome(c echo.Context) error {
	return a.endpoints.Welcome(c, http.StatusOK, a.Resources()...)
}

// Resources returns the protected resources (RFC 9728) of the Config in their order.
func (a *OAuthServer) Resources() []oauth.ProtectedResource {
	return slices.Clone(a.server.Settings.Resources)
}

// start runs the background work until Close.
func (a *OAuthServer) start(store oauth.Store, sweepEvery time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	a.stop = cancel
	// A random part of the interval keeps processes from sweeping at the same time.
	go every(ctx, sweepEvery+rand.N(sweepEvery/10), a.sweep) //nolint:gosec // no secret
	watcher, watches := store.(oauth.EndWatcher)
	a.ended = &endedGrants{
		watcher: watcher,
		now:     a.config.Now,
		logger:  a.config.Logger,
		forget:  a.server.Operator.ForgetGrants,
		recheck: a.server.Operator.ForgetDirectTokens,
		since:   a.config.Now(),
		known:   map[string]time.Time{},
	}
	if watches {
		a.server.Operator.OnGrantEnded(func(grant string) { a.ended.learn(grant) })
		go every(ctx, endedInterval, a.ended.poll)
	}
	disagrees := false
	// AgreeOnSecret finds out that another replica has a newer secret. Until this process has it,
	// an unknown token is an outage, because it may be valid under that secret.
	go every(ctx, time.Second/2, func(ctx context.Context) {
		err := a.server.AgreeOnSecret(ctx)
		if err != nil && !disagrees && ctx.Err() == nil {
			a.config.Logger.WarnContext(ctx, "cannot agree with the other replicas on the server secret", "error", err)
		}
		disagrees = err != nil
	})
	go every(ctx, time.Second, a.flushUses)
}

// Close stops the background work, and writes last uses and the trace. It does not close the store.
func (a *OAuthServer) Close() {
	a.stop()
	a.flushUses(context.Background())
	if a.journal != nil {
		a.journal.Close()
	}
}

func implements[T any](store oauth.Store) bool {
	_, ok := store.(T)
	return ok
}

// advise logs what works, but not as a host may expect: short access tokens, and missing optional
// interfaces that switch a feature off without an error. A store that wraps another one loses the
// interfaces of the inner store unnoticed.
func advise(settings *oauth.Settings, store oauth.Store, logger *slog.Logger) {
	if settings.AccessTokenTTL < 6*time.Minute {
		logger.Warn("Claude Code and Gemini CLI refresh before almost every request, because they do so in the last "+
			"five minutes of an access token: set access-token-ttl (AccessTokenTTL) to 6m or more",
			"access_token_ttl", settings.AccessTokenTTL.String())
	}
	var missing []string
	for _, capability := range []struct {
		name     string
		provided bool
	}{
		{"oauth.EndWatcher", implements[oauth.EndWatcher](store)},
		{"oauth.SharedStore", implements[oauth.SharedStore](store)},
		{"oauth.SecretVerifier", implements[oauth.SecretVerifier](store)},
		{"oauth.AuthorizationLister", implements[oauth.AuthorizationLister](store)},
		{"client.DocumentStore", implements[client.DocumentStore](store)},
		{"attempt.Log", implements[attempt.Log](store)},
	} {
		if !capability.provided {
			missing = append(missing, capability.name)
		}
	}
	if len(missing) > 0 {
		logger.Info("the store lacks optional interfaces, so some features are off; docs/embedding.md lists them",
			"missing", strings.Join(missing, ", "))
	}
}
