package diagnosis

// knownClient is a client that publishes a metadata document. seen names where its client_id was read.
type knownClient struct{ name, document, seen string }

// wellKnownClients are the clients that `doctor --egress` tries. docs/clients.md has the evidence with dates.
var wellKnownClients = []knownClient{
	{"Claude", "https://claude.ai/oauth/mcp-oauth-client-metadata", "anthropics/claude-ai-mcp #650"},
	{"Claude Code", "https://claude.ai/oauth/claude-code-client-metadata", "anthropics/claude-code #84263"},
	{"ChatGPT", "https://chatgpt.com/oauth/client.json", "tableau/tableau-mcp #814"},
	{"Codex", "https://chatgpt.com/oauth/codex/client.json", "openai/codex #38089"},
	{"VS Code", "https://vscode.dev/oauth/client-metadata.json", "tableau/tableau-mcp #199"},
	{"VS Code Insiders", "https://insiders.vscode.dev/oauth/client-metadata.json", "speakeasy-api/gram aivendors/registry.go"},
	{"GitHub Copilot CLI", "https://github.com/copilot/cli/client-metadata.json", "github/copilot-cli #4793"},
	{"Goose", "https://goose-docs.ai/oauth/client-metadata.json", "aaif-goose/goose #8550"},
	{"opencode", "https://opencode.ai/oauth/opencode/client.json", "anomalyco/opencode #47743"},
	{"Zed", "https://zed.dev/oauth/client-metadata.json", "zed-industries/zed context_server/src/oauth.rs"},
	{"Factory Droid", "https://api.factory.ai/mcp/oauth-client", "speakeasy-api/gram aivendors/registry.go"},
	{"Grok", "https://grok.com/oauth/mcp-client.json", "koala73/worldmonitor #8305"},
	{"Notion", "https://app.notion.com/oauth/mcp-client-metadata.json", "speakeasy-api/gram aivendors/registry.go"},
}
