package cimd

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/adapters/internal/outbound"
	"github.com/pasteport/pasteport/domain/oauth"
)

// readDocument returns the body of a response with status 200, a JSON type and at most limit bytes;
// it decompresses gzip. For any other response it returns oauth.ErrMetadataNoDocument, which wraps
// oauth.ErrMetadataUnreachable. For a body that is incomplete or takes too long it returns the
// latter alone.
func readDocument(response *http.Response, limit int64) (body []byte, err error) {
	if err := checkHead(response, limit); err != nil {
		return nil, fmt.Errorf("%w: %w", oauth.ErrMetadataNoDocument, err)
	}
	plain := io.Reader(response.Body)
	if strings.HasSuffix(encodingOf(response), "gzip") { // some hosts compress what was asked for as it is
		plain, err = gzip.NewReader(plain)
	}
	if err == nil {
		body, err = io.ReadAll(io.LimitReader(plain, limit+1))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: read the response: %w", oauth.ErrMetadataUnreachable, err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("%w: the response has more than %d bytes", oauth.ErrMetadataNoDocument, limit)
	}
	return body, nil
}

func encodingOf(response *http.Response) string {
	return strings.ToLower(strings.Join(response.Header.Values("Content-Encoding"), ","))
}

func checkHead(response *http.Response, limit int64) error {
	switch {
	case response.StatusCode != http.StatusOK:
		return oauth.MetadataStatus(response.StatusCode)
	case !outbound.IsJSON(response.Header.Get("Content-Type")):
		return errors.New("the content type of the response is not JSON")
	case !slices.Contains([]string{"", "identity", "gzip", "x-gzip"}, encodingOf(response)):
		return errors.New("the response has a content encoding other than gzip")
	case response.ContentLength > limit:
		return fmt.Errorf("the response announces more than %d bytes", limit)
	}
	return nil
}
