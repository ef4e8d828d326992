package doctor

// Who is kept from connecting. What is said of each was read in public issues or measured; see the catalogue, section 0.
const (
	claudeCode = "Claude Code"
	claude     = "claude.ai"
	chatGPT    = "ChatGPT"
	vsCode     = "VS Code"
	browsers   = "clients in a browser, like the MCP Inspector"
	goSDK      = "clients on the official Go SDK"
	tsSDK      = "clients on the official TypeScript SDK"
	older      = "older clients that speak HTTP with SSE"
)

var everybody = []string{"every client"}
