package pages

import (
	"net/http"
)

// Welcome is the page for a person who opens the address of an MCP server in a browser.
type Welcome struct {
	Servers []Server // at least one
	Manage  string   // URL of the connections page
}

// WriteWelcome answers with the welcome page. Nothing is written if it cannot be rendered.
func (e Edition) WriteWelcome(w http.ResponseWriter, status int, page Welcome) error {
	s := e.sheet()
	return s.write(w, status, s.welcome(page))
}

// Notice is a page with texts of the caller in English.
type Notice struct {
	Title      string
	Paragraphs []string
	Link       string // "" for none
	LinkText   string
}

// WriteNotice answers with the notice. Nothing is written if it cannot be rendered.
func (e Edition) WriteNotice(w http.ResponseWriter, notice Notice) error {
	s := e.sheet()
	return s.write(w, http.StatusOK, s.notice(notice))
}
