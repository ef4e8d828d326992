package cimd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pasteport/pasteport/adapters/strictjson"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Pinned are the metadata documents in an operator's folder, one in each .json file. They are used
// without a fetch. Documents reads the folder again when a file has changed; while a file is
// invalid, the last valid documents apply. It is safe for concurrent use.
type Pinned struct {
	folder   string
	clientID oauth.ClientIDRules
	metadata oauth.ClientMetadataRules
	logger   *slog.Logger

	mu        sync.Mutex
	state     []fileState
	documents map[oauth.ClientID]PinnedDocument
	mistake   string // the last one that was logged; "" while the folder is valid
}

// PinnedDocument is a metadata document in a file.
type PinnedDocument struct {
	File     string
	Modified time.Time
	Body     []byte
	Client   *oauth.ClientMetadata
}

// fileState is what changes when a file is replaced or edited.
type fileState struct {
	name     string
	size     int64
	modified time.Time
}

// OpenPinned reads the folder, and fails on any mistake in it.
func OpenPinned(folder string, clientID oauth.ClientIDRules, metadata oauth.ClientMetadataRules,
	logger *slog.Logger) (*Pinned, error) {
	p := &Pinned{
		folder:   folder,
		clientID: clientID,
		metadata: metadata,
		logger:   logger,
	}
	return p, p.read()
}

// Documents returns the documents by client_id. The caller must not change the map.
func (p *Pinned) Documents(ctx context.Context) map[oauth.ClientID]PinnedDocument {
	p.mu.Lock()
	defer p.mu.Unlock()
	mistake := ""
	if err := p.read(); err != nil {
		mistake = err.Error()
	}
	if mistake != "" && mistake != p.mistake {
		p.logger.ErrorContext(ctx, "pinned client documents cannot be used, those read before stay valid",
			"error", mistake)
	}
	p.mistake = mistake
	return p.documents
}

// find returns the pinned document of a client, nil if there is none.
func (p *Pinned) find(ctx context.Context, id oauth.ClientID) *oauth.ClientMetadata {
	if p == nil {
		return nil
	}
	return p.Documents(ctx)[id].Client
}

// read reads the folder if a file has changed since the last time, so that a mistake is reported
// once.
func (p *Pinned) read() error {
	state, err := p.list()
	if err != nil {
		return fmt.Errorf("reading the pinned client documents: %w", err)
	}
	if p.state != nil && slices.Equal(state, p.state) {
		return nil
	}
	p.state = state
	documents, err := p.readAll(state)
	if err != nil {
		return fmt.Errorf("reading the pinned client documents: %w", err)
	}
	p.documents = documents
	return nil
}

func (p *Pinned) list() ([]fileState, error) {
	entries, err := os.ReadDir(p.folder)
	if err != nil {
		return nil, err
	}
	state := []fileState{}
	for _, entry := range entries {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), ".json") || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		found, err := os.Stat(filepath.Join(p.folder, entry.Name())) // follows the links of a Kubernetes ConfigMap
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !found.Mode().IsRegular() { // opening a pipe would wait for its writer, and with it every request
			return nil, fmt.Errorf("%s is not a regular file: remove it", filepath.Join(p.folder, entry.Name()))
		}
		state = append(state, fileState{entry.Name(), found.Size(), found.ModTime()})
	}
	return state, nil
}

func (p *Pinned) readAll(state []fileState) (map[oauth.ClientID]PinnedDocument, error) {
	documents := map[oauth.ClientID]PinnedDocument{}
	var mistakes []error
	for _, file := range state {
		document, err := p.readFile(file)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: %w", filepath.Join(p.folder, file.name), err))
			continue
		}
		id := document.Client.ID()
		if other, twice := documents[id]; twice {
			mistakes = append(mistakes,
				fmt.Errorf("%s and %s have the same client_id %s: delete one", other.File, document.File, id))
		}
		documents[id] = document
	}
	return documents, errors.Join(mistakes...)
}

func (p *Pinned) readFile(file fileState) (PinnedDocument, error) {
	path := filepath.Join(p.folder, file.name)
	body, err := readAtMost(path, defaultLimits.bodyBytes)
	if err != nil {
		return PinnedDocument{}, err
	}
	members, err := strictjson.Object(body)
	if err != nil {
		return PinnedDocument{}, err
	}
	name, _ := members["client_id"].(string)
	id, err := oauth.ParseClientID(name, p.clientID)
	if err != nil {
		return PinnedDocument{}, err
	}
	client, err := oauth.NewClientMetadata(id, members, p.metadata)
	return PinnedDocument{
		File:     path,
		Modified: file.modified,
		Body:     body,
		Client:   client,
	}, err
}

func readAtMost(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(body)) > limit {
		err = fmt.Errorf("the file has more than %d bytes", limit)
	}
	return body, err
}
