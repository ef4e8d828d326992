package cimd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/pasteport/pasteport/adapters/internal/strictjson"
	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/oauth/client"
)

// Pinned are the metadata documents in an operator's folder, one in each .json file. They are used
// without a fetch. Documents reads them again; while a file is invalid, the last valid documents
// apply. It is safe for concurrent use.
type Pinned struct {
	folder string
	rules  *client.Rules
	logger *slog.Logger

	mu        sync.Mutex
	documents map[oauth.ClientID]PinnedDocument
	mistake   string // the last one that was logged; "" while the folder is valid
}

// PinnedDocument is a metadata document in a file.
type PinnedDocument struct {
	File   string
	Body   []byte
	Client *client.Metadata
}

// OpenPinned reads the folder, and fails on any mistake in it.
func OpenPinned(folder string, rules *client.Rules, logger *slog.Logger) (*Pinned, error) {
	p := &Pinned{folder: folder, rules: rules, logger: logger}
	return p, p.read()
}

// Documents returns the documents by client_id. The caller must not change the map.
func (p *Pinned) Documents(ctx context.Context) map[oauth.ClientID]PinnedDocument {
	p.mu.Lock()
	defer p.mu.Unlock()
	mistake := ""
	if err := p.read(); err != nil {
		if mistake = err.Error(); mistake != p.mistake {
			p.logger.ErrorContext(ctx, "pinned client documents cannot be used, those read before stay valid",
				"error", mistake)
		}
	}
	p.mistake = mistake
	return p.documents
}

// find returns the pinned document of a client, nil for none. A client that reconnects may send
// another id than the published one.
func (p *Pinned) find(ctx context.Context, id oauth.ClientID) *client.Metadata {
	if p == nil {
		return nil
	}
	documents := p.Documents(ctx)
	if exact, found := documents[id]; found {
		return exact.Client
	}
	published, found := documents[id.Published()]
	if !found {
		return nil
	}
	requested := *published.Client // a copy, with the id that the client has sent
	requested.ID = id
	return &requested
}

// read reads the folder, and changes nothing if there is a mistake in it.
func (p *Pinned) read() error {
	entries, err := os.ReadDir(p.folder)
	if err != nil {
		return fmt.Errorf("reading the pinned client documents: %w", err)
	}
	documents := map[oauth.ClientID]PinnedDocument{}
	var mistakes []error
	for _, entry := range entries {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), ".json") || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		path := filepath.Join(p.folder, entry.Name())
		document, err := p.readFile(path)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: %w", path, err))
			continue
		}
		id := document.Client.ID
		if other, twice := documents[id]; twice {
			mistakes = append(mistakes,
				fmt.Errorf("%s and %s have the same client_id %s: delete one", other.File, path, id))
		}
		documents[id] = document
	}
	if len(mistakes) > 0 {
		return fmt.Errorf("reading the pinned client documents: %w", errors.Join(mistakes...))
	}
	p.documents = documents
	return nil
}

func (p *Pinned) readFile(path string) (document PinnedDocument, err error) {
	file, err := os.Stat(path) // follows the links of a Kubernetes ConfigMap
	switch {
	case err != nil:
		return document, err
	case !file.Mode().IsRegular(): // every request would wait for the writer of a pipe
		return document, errors.New("it is not a regular file: remove it")
	case file.Size() > defaultLimits.bodyBytes:
		return document, fmt.Errorf("the file has more than %d bytes", defaultLimits.bodyBytes)
	}
	document.File = path
	if document.Body, err = os.ReadFile(path); err != nil {
		return document, err
	}
	members, err := strictjson.Object(document.Body)
	if err != nil {
		return document, err
	}
	name, _ := members["client_id"].(string)
	id, err := p.rules.ParseURL(name)
	if err != nil {
		return document, err
	}
	document.Client, err = p.rules.NewMetadata(id, members)
	return document, err
}
