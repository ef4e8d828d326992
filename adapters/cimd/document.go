package cimd

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/pasteport/pasteport/domain/oauth"
)

// maxDepth is how deep a document may nest; the document itself is depth 1 (C22).
const maxDepth = 8

// readDocument returns the body of an answer that is exactly what was requested: 200, JSON, not encoded and small (C12-C15). For any other
// answer it returns oauth.ErrMetadataNoDocument, and for a body that breaks off or takes too long oauth.ErrMetadataUnreachable alone (C56).
func readDocument(response *http.Response, limit int64, anyType bool) ([]byte, error) {
	if err := checkHead(response, limit, anyType); err != nil {
		return nil, fmt.Errorf("%w: %w", oauth.ErrMetadataNoDocument, err)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: read the answer: %w", oauth.ErrMetadataUnreachable, err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("%w: the answer has more than %d bytes", oauth.ErrMetadataNoDocument, limit)
	}
	return body, nil
}

func checkHead(response *http.Response, limit int64, anyType bool) error {
	switch {
	case response.StatusCode != http.StatusOK:
		return statusError(response.StatusCode)
	case !anyType && !isJSON(response.Header.Get("Content-Type")):
		return errors.New("the answer's content type is not JSON")
	case len(response.Header.Values("Content-Encoding")) > 0:
		return errors.New("the answer is encoded")
	case response.ContentLength > limit:
		return fmt.Errorf("the answer announces more than %d bytes", limit)
	}
	return nil
}

// statusError reports a status other than 200.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("the answer's status is %d", int(e)) }

// isTransient reports whether a fetch failed for a reason other than the document: its host is unreachable, broken or refuses requests for
// now, or this server had no place for the fetch (C56).
func isTransient(err error) bool {
	var status statusError
	switch {
	case errors.Is(err, oauth.ErrMetadataBudget):
		return true
	case errors.As(err, &status):
		return status == http.StatusForbidden || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
	}
	return errors.Is(err, oauth.ErrMetadataUnreachable) && !errors.Is(err, oauth.ErrMetadataNoDocument)
}

// isJSON reports whether a media type is application/json or application/*+json, parameters aside (C14).
func isJSON(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	subtype, found := strings.CutPrefix(strings.ToLower(strings.TrimSpace(mediaType)), "application/")
	return found && (subtype == "json" || len(subtype) > len("+json") && strings.HasSuffix(subtype, "+json"))
}

// shallow lets the decoder's own code read every value that does not nest too deep.
var shallow = json.WithUnmarshalers(json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, _ *any) error {
	if next := decoder.PeekKind(); decoder.StackDepth() >= maxDepth && (next == '{' || next == '[') {
		return fmt.Errorf("the document nests deeper than %d", maxDepth)
	}
	return errors.ErrUnsupported
}))

// decodeDocument reads one JSON object and nothing else. The decoder itself refuses duplicate names, bad UTF-8, a byte order
// mark and what follows the object, and keeps the case of names (C22).
func decodeDocument(body []byte) (map[string]any, error) {
	var members map[string]any
	if err := json.Unmarshal(body, &members, shallow); err != nil {
		return nil, fmt.Errorf("decode the document: %w", err)
	}
	if members == nil {
		return nil, errors.New("the document is null")
	}
	return members, nil
}
