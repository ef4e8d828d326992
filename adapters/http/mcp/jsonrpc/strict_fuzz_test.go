package jsonrpc

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
)

// FuzzStrict parses bodies as a gateway does, and those that it accepts also with the SDK's decoder and the standard library's: all must find the
// same calls (U11).
func FuzzStrict(f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		sent := bytes.Clone(body)
		ours, err := readStrict(body)
		if text, err := replaceSurrogates(body); err == nil && len(text) != len(body) {
			t.Fatalf("read %q in the place of %q", text, body)
		}
		if !bytes.Equal(body, sent) {
			t.Fatalf("wrote %q into the body %q", body, sent)
		}
		if err != nil {
			refused := Refuse(err, body)
			if refused.text == "" || refused.id != nil && !json.Valid(refused.id) {
				t.Fatalf("refused %q as %+v", body, refused)
			}
			return
		}
		theirs, err := Peek(body)
		if err != nil || !theirs.Decoded || ours.Initialize != theirs.Initialize || ours.Listen != theirs.Listen ||
			!slices.Equal(ours.Tools, theirs.Tools) || !bytes.Equal(ours.ID, theirs.ID) {
			t.Fatalf("read %+v, and the SDK %+v", ours, theirs)
		}
		if standard := standardTools(t, body); !slices.Equal(ours.Tools, standard) {
			t.Fatalf("found calls of %q, and the standard library of %q", ours.Tools, standard)
		}
	})
}

// standardTools returns the tools that encoding/json finds, which ignores case and takes the last of duplicates.
func standardTools(t *testing.T, body []byte) (tools []string) {
	type call struct {
		Method string
		Params json.RawMessage
	}
	var calls []call
	if trimmed := bytes.TrimSpace(body); trimmed[0] == '[' {
		if err := json.Unmarshal(body, &calls); err != nil {
			t.Fatal(err)
		}
	} else {
		calls = make([]call, 1)
		if err := json.Unmarshal(body, &calls[0]); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range calls {
		var params struct{ Name string }
		if len(one.Params) > 0 {
			if err := json.Unmarshal(one.Params, &params); err != nil {
				t.Fatal(err)
			}
		}
		if one.Method == "tools/call" {
			tools = append(tools, params.Name)
		}
	}
	return tools
}
