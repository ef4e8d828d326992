package settings

import (
	"bytes"
	"testing"
)

// FuzzFile reads any file without harm; what it takes is printed in a way that reads the same
// again.
func FuzzFile(f *testing.F) {
	f.Fuzz(func(t *testing.T, text []byte) {
		var first, second sample
		table := first.table()
		if table.readText(text) != nil {
			return
		}
		first.Secret = "" // is never printed
		var printed, again bytes.Buffer
		if err := table.WriteEffective(&printed, false); err != nil {
			t.Fatal(err)
		}
		reread := second.table()
		if err := reread.readText(printed.Bytes()); err != nil {
			t.Fatalf("%v in\n%s", err, printed.String())
		}
		if err := reread.WriteEffective(&again, false); err != nil {
			t.Fatal(err)
		}
		if withoutOrigins(printed.String()) != withoutOrigins(again.String()) {
			t.Fatalf("first\n%s\nthen\n%s", printed.String(), again.String())
		}
	})
}
