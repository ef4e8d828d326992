package outbound

import "strings"

// IsJSON reports whether a media type is application/json or application/*+json, with any
// parameters.
func IsJSON(contentType string) bool {
	mediaType, _, _ := strings.Cut(contentType, ";")
	subtype, found := strings.CutPrefix(strings.ToLower(strings.TrimSpace(mediaType)), "application/")
	return found && (subtype == "json" || len(subtype) > len("+json") && strings.HasSuffix(subtype, "+json"))
}
