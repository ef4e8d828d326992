package term

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// PrintJSON writes value as indented JSON.
func PrintJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("printing JSON: %w", err)
	}
	return nil
}

// Time formats a time in the local zone.
func Time(at time.Time) string { return at.Local().Format(time.DateTime) }

// OrDash returns text, or a dash for an empty column.
func OrDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// Quote puts a path with spaces into quotes, so that a shell reads it as one word.
func Quote(path string) string {
	if strings.ContainsAny(path, " \t") {
		return fmt.Sprintf(`"%s"`, path)
	}
	return path
}
