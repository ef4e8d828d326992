// Command write brings the table of settings in docs/settings.md up to date. Run it from the
// module's root.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/pasteport/pasteport/bootstrap/service"
)

const settingsPage = "docs/settings.md"

var begin, end = []byte("<!-- settings -->\n"), []byte("<!-- end of settings -->\n")

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write() error {
	page, err := os.ReadFile(settingsPage)
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	before, rest, begun := bytes.Cut(page, begin)
	_, after, ended := bytes.Cut(rest, end)
	if !begun || !ended {
		return errors.New("the two comments around the table of settings are missing: put them back")
	}
	var table bytes.Buffer
	if err := service.DefaultConfig().Table().WriteReference(&table); err != nil {
		return fmt.Errorf("listing the settings: %w", err)
	}
	//nolint:gosec // a public page
	if err := os.WriteFile(settingsPage, bytes.Join([][]byte{before, begin, table.Bytes(), end, after}, nil),
		0o644); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}
