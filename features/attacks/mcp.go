package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

const (
	listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"attacks","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + revision +
		`","capabilities":{},` +
		`"clientInfo":{"name":"attacks","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	callTool    = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_articles","arguments":{}}}`

	revision = "2025-11-25" // the last one with sessions
)

// Call sends a first request to the MCP server.
func (p *Person) Call(ctx context.Context) error {
	if p.session {
		return p.callInSession(ctx)
	}
	got, err := p.message(ctx, p.access, listTools,
		http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"}})
	if err != nil || got.status != http.StatusOK || !strings.Contains(got.text, "list_articles") {
		return failed("call", got, err)
	}
	return nil
}

// callInSession opens a session, calls a tool in it, and leaves the session open.
func (p *Person) callInSession(ctx context.Context) error {
	opened, err := p.openSession(ctx, p.access)
	if err != nil || opened.status != http.StatusOK {
		return failed("open a session", opened, err)
	}
	header := func() http.Header {
		return http.Header{"Mcp-Protocol-Version": {revision}, "Mcp-Session-Id": {opened.header.Get("Mcp-Session-Id")}}
	}
	if got, err := p.message(ctx, p.access, initialized, header()); err != nil || got.status != http.StatusAccepted {
		return failed("begin a session", got, err)
	}
	got, err := p.message(ctx, p.access, callTool, header())
	if err != nil || got.status != http.StatusOK || !strings.Contains(got.text, `"result"`) {
		return failed("call a tool in a session", got, err)
	}
	return nil
}

func (b browser) openSession(ctx context.Context, access string) (answer, error) {
	return b.message(ctx, access, initialize, http.Header{})
}

func (b browser) message(ctx context.Context, access, body string, header http.Header) (answer, error) {
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json, text/event-stream")
	header.Set("Authorization", fmt.Sprintf("Bearer %s", access))
	return b.send(ctx, http.MethodPost, b.network.issuer+"/mcp", body, header)
}
