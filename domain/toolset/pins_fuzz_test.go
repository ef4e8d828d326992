package toolset

import (
	"testing"
)

// FuzzPins reads stored texts, and compares what is read with a list.
func FuzzPins(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, name, definition string) {
		list := List{Tools: []Tool{New(name, []byte(definition))}, IsFirst: true}
		stored := Restore(text)
		pins := stored.After(list)
		if !pins.IsReadable() || pins.After(list) != pins {
			t.Fatalf("%q became %q and then %q", text, pins, pins.After(list))
		}
		if before := stored.parse(); text != "" && !before.isOpen && pins.Permits()(name) &&
			before.tools[name].digest != list.Tools[0].digest {
			t.Fatalf("%q permits %q", text, name)
		}
	})
}
