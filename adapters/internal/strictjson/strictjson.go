// Package strictjson decodes JSON that strangers send, so that no other parser can read it in
// another way. Object is its only function.
package strictjson

import (
	"errors"
	"fmt"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is the maximum nesting; the object itself is level 1.
const maxDepth = 8

// shallow makes the decoder refuse values beyond maxDepth.
var shallow = json.WithUnmarshalers(json.UnmarshalFromFunc(func(decoder *jsontext.Decoder, _ *any) error {
	if next := decoder.PeekKind(); decoder.StackDepth() >= maxDepth && (next == '{' || next == '[') {
		return fmt.Errorf("the document nests deeper than %d", maxDepth)
	}
	return errors.ErrUnsupported // the decoder then decodes the value itself
}))

// Object decodes one JSON object. The decoder refuses duplicate names, invalid UTF-8, a byte order
// mark and data after the object, and distinguishes the case of names. Object removes members that
// are null, because many libraries write absent members as null.
func Object(body []byte) (map[string]any, error) {
	var members map[string]any
	if err := json.Unmarshal(body, &members, shallow); err != nil {
		return nil, fmt.Errorf("decode the document: %w", err)
	}
	if members == nil {
		return nil, errors.New("the document is null")
	}
	maps.DeleteFunc(members, func(_ string, value any) bool { return value == nil })
	return members, nil
}
