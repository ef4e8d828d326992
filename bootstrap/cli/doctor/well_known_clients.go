package doctor

// knownClient is a client that publishes a metadata document. seen names where its client_id was
// read. One that runs at its maker connects from its maker's servers.
type knownClient struct {
	name, document, seen string
	runsAtMaker          bool
}

// wellKnownClients are the clients that `doctor --egress` tries. docs/clients.md has the evidence
// with dates.
var wellKnownClients = []knownClient{
	{"Claude", "https://claude.ai/oauth/mcp-oauth-client-metadata", "anthropics/claude-ai-mcp #650", true},
	{"Claude Code", "https://claude.ai/oauth/claude-code-client-metadata", "anthropics/claude-code #84263", false},
	{"ChatGPT", "https://chatgpt.com/oauth/client.json", "tableau/tableau-mcp #814", true},
	{"Codex", "https://chatgpt.com/oauth/codex/client.json", "openai/codex #38089", false},
	{"VS Code", "https://vscode.dev/oauth/client-metadata.json", "tableau/tableau-mcp #199", false},
	{"VS Code Insiders", "https://insiders.vscode.dev/oauth/client-metadata.json",
		"speakeasy-api/gram aivendors/registry.go", false},
	{"GitHub Copilot CLI", "https://github.com/copilot/cli/client-metadata.json", "github/copilot-cli #4793", false},
	{"Goose", "https://goose-docs.ai/oauth/client-metadata.json", "aaif-goose/goose #8550", false},
	{"Zed", "https://zed.dev/oauth/client-metadata.json", "zed-industries/zed context_server/src/oauth.rs", false},
	{"Factory Droid", "https://api.factory.ai/mcp/oauth-client", "speakeasy-api/gram aivendors/registry.go", false},
	{"Grok", "https://grok.com/oauth/mcp-client.json", "koala73/worldmonitor #8305", true},
	{"Notion", "https://app.notion.com/oauth/mcp-client-metadata.json",
		"speakeasy-api/gram aivendors/registry.go", true},
}

// registeringClients register themselves, at least by default.
var registeringClients = []KnownClient{
	{Name: "Cursor"}, {Name: "Gemini CLI"}, {Name: "opencode"}, {Name: "LM Studio"}, {Name: "Warp"}, {Name: "Raycast"},
	{Name: "Cline"}, {Name: "Amp"},
	{Name: "GitHub Copilot in JetBrains"}, {Name: "mcp-remote"}, {Name: "MCP Inspector"},
	{Name: "Microsoft Copilot Studio", RunsAtMaker: true, NeedsSecret: true},
	{Name: "Microsoft 365 Copilot", RunsAtMaker: true, NeedsSecret: true},
	{Name: "Mistral Le Chat", RunsAtMaker: true, NeedsSecret: true},
}
