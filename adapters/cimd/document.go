package cimd

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/domain/oauth"
)

// readDocument returns the body of a response with status 200, a JSON type and at most limit bytes;
// it decompresses gzip. For any other response it returns oauth.ErrMetadataNoDocument, which wraps
// oauth.ErrMetadataUnreachable. For a body that is incomplete or takes too long it returns the
// latter alone.
func readDocument(response *http.Response, limit int64, anyType bool) ([]byte, error) {
	if err := checkHead(response, limit, anyType); err != nil {
		return nil, fmt.Errorf("%w: %w", oauth.ErrMetadataNoDocument, err)
	}
	body, err := readBody(response, limit)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: read the response: %w", oauth.ErrMetadataUnreachable, err)
	case int64(len(body)) > limit:
		return nil, fmt.Errorf("%w: the response has more than %d bytes", oauth.ErrMetadataNoDocument, limit)
	}
	return body, nil
}

// readBody reads one byte more than the limit at most, also of what a compressed body contains.
// Some hosts compress although the request asks for identity.
func readBody(response *http.Response, limit int64) ([]byte, error) {
	body := io.Reader(response.Body)
	if isGzip(encodingOf(response)) {
		decompressed, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = decompressed
	}
	return io.ReadAll(io.LimitReader(body, limit+1))
}

func encodingOf(response *http.Response) string {
	return strings.ToLower(strings.Join(response.Header.Values("Content-Encoding"), ","))
}

func isGzip(encoding string) bool { return encoding == "gzip" || encoding == "x-gzip" }

func checkHead(response *http.Response, limit int64, anyType bool) error {
	switch {
	case response.StatusCode != http.StatusOK:
		return oauth.MetadataStatus(response.StatusCode)
	case !anyType && !isJSON(response.Header.Get("Content-Type")):
		return errors.New("the content type of the response is not JSON")
	case !slices.Contains([]string{"", "identity", "gzip", "x-gzip"}, encodingOf(response)):
		return errors.New("the response has a content encoding other than gzip")
	case response.ContentLength > limit:
		return fmt.Errorf("the response announces more than %d bytes", limit)
	}
	return nil
}

// isJSON reports whether a media type is application/json or application/*+json, with any
// parameters.
func isJSON(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	subtype, found := strings.CutPrefix(strings.ToLower(strings.TrimSpace(mediaType)), "application/")
	return found && (subtype == "json" || len(subtype) > len("+json") && strings.HasSuffix(subtype, "+json"))
}
