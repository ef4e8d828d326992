package bootstrap

import (
	"log/slog"
	"strings"

	"github.com/pasteport/pasteport/domain/connection"
	"github.com/pasteport/pasteport/domain/oauth"
)

// capabilities are the optional interfaces of a store whose absence switches a feature off without
// an error. docs/embedding.md has their effects. oauth.SecretKeeper is not among them, because
// NewOAuthServer fails when neither the store nor the Config has a secret.
var capabilities = []struct {
	name     string
	provided func(oauth.Store) bool
}{
	{"oauth.EndWatcher", implements[oauth.EndWatcher]},
	{"oauth.SharedStore", implements[oauth.SharedStore]},
	{"oauth.SecretVerifier", implements[oauth.SecretVerifier]},
	{"oauth.AuthorizationLister", implements[oauth.AuthorizationLister]},
	{"oauth.ClientDocumentStore", implements[oauth.ClientDocumentStore]},
	{"connection.Log", implements[connection.Log]},
}

func implements[T any](store oauth.Store) bool {
	_, ok := store.(T)
	return ok
}

// reportMissing logs the capabilities that the store lacks, because a store that wraps another
// loses those of the inner one unnoticed.
func reportMissing(store oauth.Store, logger *slog.Logger) {
	var missing []string
	for _, c := range capabilities {
		if !c.provided(store) {
			missing = append(missing, c.name)
		}
	}
	if len(missing) > 0 {
		logger.Info("the store lacks optional interfaces, so some features are off; docs/embedding.md lists them",
			"missing", strings.Join(missing, ", "))
	}
}
