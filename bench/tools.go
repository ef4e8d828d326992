package main

import (
	"fmt"

	"net/http"
)

const (
	sessionless = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{` +
		`"name":"bench"},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench",` +
		`"version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},` +
		`"clientInfo":{"name":"bench","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	toolCall    = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{` +
		`"name":"bench"}}}`
)

// prepareCall prepares a call without a session.
func prepareCall(p *person) error {
	err := p.connect()
	p.request = p.post(sessionless, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: greet")
	return err
}

// prepareSession opens a session and prepares a call in it.
func prepareSession(p *person) error {
	if err := p.connect(); err != nil {
		return err
	}
	session, err := p.openSession()
	p.request = p.post(toolCall, session, "Mcp-Protocol-Version: 2025-11-25")
	return err
}

// openSession returns the header that names the session.
func (p *person) openSession() (string, error) {
	answer, err := p.Do(p.post(initialize))
	if err != nil {
		return "", err
	}
	if answer.Status != http.StatusOK || answer.Session == "" {
		return "", fmt.Errorf("opening a session: %d: %.300s", answer.Status, answer.Body)
	}
	session := "Mcp-Session-Id: " + answer.Session
	answer, err = p.Do(p.post(initialized, session, "Mcp-Protocol-Version: 2025-11-25"))
	if err == nil && answer.Status != http.StatusAccepted {
		err = fmt.Errorf("opening a session: %d: %.300s", answer.Status, answer.Body)
	}
	return session, err
}
