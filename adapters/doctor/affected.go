package doctor

// Clients that a problem affects, as measured or reported in their public issues.
const (
	claudeCode   = "Claude Code"
	claude       = "claude.ai"
	chatGPT      = "ChatGPT"
	vsCode       = "VS Code"
	browsers     = "clients in a browser, like the MCP Inspector"
	goSDK        = "clients on the official Go SDK"
	tsSDK        = "clients on the official TypeScript SDK"
	oldTransport = "older clients that use HTTP with SSE"
)

var everyClient = []string{"every client"}
