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
	"strings"
	"sync"
	"time"

	"github.com/pasteport/pasteport/adapters/internal/strictjson"
	"github.com/pasteport/pasteport/domain/oauth"
)

// Pinned are the metadata documents in an operator's folder, one in each .json file. They are used
// without a fetch. Documents reads the files that have changed; while a file is invalid, the last
// valid documents apply. It is safe for concurrent use.
type Pinned struct {
	folder   string
	clientID oauth.ClientIDRules
	metadata oauth.ClientMetadataRules
	logger   *slog.Logger

	mu        sync.Mutex
	files     map[string]PinnedDocument
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
	documents := p.Documents(ctx)
	if exact, found := documents[id]; found {
		return exact.Client
	}
	return documents[id.Published()].Client.RequestedAs(id)
}

// read reads the folder, and changes nothing if there is a mistake in it.
func (p *Pinned) read() error {
	entries, err := os.ReadDir(p.folder)
	if err != nil {
		return fmt.Errorf("reading the pinned client documents: %w", err)
	}
	files, documents := map[string]PinnedDocument{}, map[oauth.ClientID]PinnedDocument{}
	var mistakes []error
	for _, entry := range entries {
		if entry.IsDir() || !strings.HasSuffix(entry.Name(), ".json") || strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		path := filepath.Join(p.folder, entry.Name())
		document, err := p.readFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed just now
			continue
		case err != nil:
			mistakes = append(mistakes, fmt.Errorf("%s: %w", path, err))
			continue
		}
		id := document.Client.ID()
		if other, twice := documents[id]; twice {
			mistakes = append(mistakes,
				fmt.Errorf("%s and %s have the same client_id %s: delete one", other.File, path, id))
		}
		files[path], documents[id] = document, document
	}
	if len(mistakes) > 0 {
		return fmt.Errorf("reading the pinned client documents: %w", errors.Join(mistakes...))
	}
	p.files, p.documents = files, documents
	return nil
}

// readFile returns the document in a file, the known one if its size and time are the same.
func (p *Pinned) readFile(path string) (PinnedDocument, error) {
	file, err := os.Stat(path) // follows the links of a Kubernetes ConfigMap
	if err != nil {
		return PinnedDocument{}, err
	}
	if !file.Mode().IsRegular() { // opening a pipe would wait for its writer, and with it every request
		return PinnedDocument{}, errors.New("it is not a regular file: remove it")
	}
	known, isKnown := p.files[path]
	if isKnown && int64(len(known.Body)) == file.Size() && known.Modified.Equal(file.ModTime()) {
		return known, nil
	}
	read := PinnedDocument{File: path, Modified: file.ModTime()}
	if read.Body, err = readAtMost(path, defaultLimits.bodyBytes); err != nil {
		return PinnedDocument{}, err
	}
	members, err := strictjson.Object(read.Body)
	if err != nil {
		return PinnedDocument{}, err
	}
	name, _ := members["client_id"].(string)
	id, err := oauth.ParseClientID(name, p.clientID)
	if err != nil {
		return PinnedDocument{}, err
	}
	read.Client, err = oauth.NewClientMetadata(id, members, p.metadata)
	return read, err
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
