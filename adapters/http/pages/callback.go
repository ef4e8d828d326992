package pages

import (
	_ "embed" // the script
	"net/http"
	"time"
)

// callbackScript shows and serves the copy button, because a long address is easily copied without
// its end. Without script, the person selects the address in its field by hand.
//
//go:embed callback.js
var callbackScript string

// Callback is the page with the callback URL, for a person who carries it to an app on another
// computer.
type Callback struct {
	URL       string
	ExpiresAt time.Time
	Left      time.Duration // until ExpiresAt
	Manage    string        // URL of the connections page
}

// Minutes returns the whole minutes that are left; a second that the answer may take does not
// count.
func (c Callback) Minutes() int { return int((c.Left + time.Second) / time.Minute) }

func (c Callback) expiry() markup {
	at := c.ExpiresAt.UTC()
	return markup(`<time datetime="` + at.Format(time.RFC3339) + `">` + at.Format("15:04:05 UTC") + `</time>`)
}

// WriteCallback answers with the page of the callback URL. Nothing is written if it cannot be
// rendered.
func (e Edition) WriteCallback(w http.ResponseWriter, c Callback) error {
	s := e.sheet()
	s.scripts = true
	return s.write(w, http.StatusOK, s.callback(c))
}
