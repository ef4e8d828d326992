package bootstrap

import (
	"fmt"

	"github.com/pasteport/pasteport/adapters/mcp/gateway/upstream"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

// checkTarget checks the options of an upstream whose URL is a credential.Target, so that each
// person enters the address.
func (u Upstream) checkTarget() error {
	switch {
	case u.Credential != CredentialHostToken:
		return oauth.NewMistake("%s is %q, but the address of the MCP server is a field: choose %q",
			oauth.Field("Credential"), u.Credential, CredentialHostToken)
	case u.Host != "":
		return oauth.NewMistake("%s is set, but the address of the MCP server is a field: leave it out",
			oauth.Field("Host"))
	}
	return nil
}

// CheckUpstreamURL checks the URL of an upstream: https, or http on loopback and private addresses,
// or a field with hosts in braces and a path, such as "{url}/mcp".
func CheckUpstreamURL(url string, fields credential.Fields) error {
	reach := upstream.Reach{AllowHTTP: true}
	if !credential.IsTarget(url) {
		return reach.CheckURL(url)
	}
	target, err := fields.ParseTarget(url)
	if err != nil {
		return err
	}
	for _, example := range target.Examples() {
		if err := reach.CheckURL(example); err != nil {
			return fmt.Errorf("the host for %s: %w", example, err)
		}
	}
	return nil
}
