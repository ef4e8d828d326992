package oauth

import (
	"testing"
)

// FuzzToolDigests reads stored texts, and compares what is read with a list of the same tools.
func FuzzToolDigests(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, name, definition string) {
		stored := RestoreToolDigests(text)
		listed := []Tool{NewTool(name, "", []byte(definition))}
		if stored.Check(name, listed) == nil && stored.parse()[name] != listed[0].digest {
			t.Fatalf("%q permits %q with the digest %q", text, name, listed[0].digest)
		}
		if stored.IsReadable() && text != "" {
			var tools []Tool
			for known, digest := range stored.parse() {
				tools = append(tools, Tool{Name: known, digest: digest})
			}
			if again, err := NewToolDigests(tools); err == nil && again.String() != text {
				t.Fatalf("%q is read and written as %q", text, again)
			}
		}
		digests, err := NewToolDigests(listed)
		if err != nil {
			return
		}
		if !digests.IsReadable() || !digests.Changes(listed).Empty() || digests.Check(name, listed) != nil {
			t.Fatalf("%q differs from its own digests %q", name, digests)
		}
	})
}
