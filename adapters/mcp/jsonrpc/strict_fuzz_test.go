package jsonrpc

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	jsonv1 "github.com/go-json-experiment/json/v1"
	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// FuzzStrict parses bodies as a gateway does, and those that it accepts also with the SDK's decoder
// and the standard library's: all must find the same calls.
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
		tools, prompts, resources := standardNames(t, body)
		if !slices.Equal(ours.Tools, tools) {
			t.Fatalf("found calls of %q, and the standard library of %q", ours.Tools, tools)
		}
		for _, name := range prompts {
			if !slices.Contains(ours.Prompts, name) {
				t.Fatalf("found the prompts %q, and the standard library %q", ours.Prompts, prompts)
			}
		}
		for _, uri := range resources {
			if !slices.Contains(ours.Resources, uri) {
				t.Fatalf("found the resources %q, and the standard library %q", ours.Resources, resources)
			}
		}
	})
}

// FuzzPeek compares the calls that Peek finds with those that the SDK would run.
func FuzzPeek(f *testing.F) {
	for _, params := range []string{
		`{"name":"write","Name":"read"}`, `{"name":"read","name":"write"}`, `{"name":"write","name":null}`,
		`{"n\u0061me":"wr\u0069te"}`, `{"name":7,"name":"write"}`, `{"name":"write"},"params":{"name":"read"}`,
	} {
		f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		ours, err := Peek(body)
		message, failed := sdk.DecodeMessage(body)
		request, ok := message.(*sdk.Request)
		if err != nil || failed != nil || !ok || request.Method != "tools/call" || tooDeep(body) {
			return
		}
		var params struct {
			Name string `json:"name"`
		}
		if jsonv2.Unmarshal(request.Params, &params, jsontext.AllowDuplicateNames(true),
			jsontext.AllowInvalidUTF8(true), jsonv1.MergeWithLegacySemantics(true)) == nil &&
			!slices.Contains(ours.Tools, params.Name) {
			t.Fatalf("found calls of %q, and the SDK of %q", ours.Tools, params.Name)
		}
	})
}

// standardNames returns the names that encoding/json finds, which ignores case and takes the last
// of duplicates.
func standardNames(t *testing.T, body []byte) (tools, prompts, resources []string) {
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
		var further struct { // members that other methods may have with any type
			Ref           struct{ Name, URI string }
			URI           string
			Notifications struct{ ResourceSubscriptions []string }
		}
		_ = json.Unmarshal(one.Params, &further)
		if strings.HasPrefix(one.Method, "tools/") && (params.Name != "" || one.Method == "tools/call") {
			tools = append(tools, params.Name)
		}
		switch one.Method {
		case "prompts/get":
			prompts = append(prompts, params.Name)
		case "resources/read":
			resources = append(resources, further.URI)
		case "completion/complete":
			prompts, resources = append(prompts, further.Ref.Name), append(resources, further.Ref.URI)
		case "subscriptions/listen":
			resources = append(resources, further.Notifications.ResourceSubscriptions...)
		}
	}
	without := func(names []string) []string {
		return slices.DeleteFunc(names, func(name string) bool { return name == "" })
	}
	return tools, without(prompts), without(resources)
}
