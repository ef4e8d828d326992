package oauth

import "regexp"

// tokenForm is the form of the tokens, codes and client secrets of this server. A shorter beginning
// of a token has only the id of its grant.
var tokenForm = regexp.MustCompile(`pp[arcs]_[A-Za-z0-9_-]{16,}`)

// tokenKinds names the secrets of this server by their beginnings, which have one length.
var tokenKinds = map[string]string{
	string(AccessTokenSecret):  "[access token]",
	string(RefreshTokenSecret): "[refresh token]",
	string(CodeSecret):         "[code]",
	ClientSecretPrefix:         "[client secret]",
}

// MaskTokens replaces what has the form of a token, code or client secret of this server by its
// kind. Clients put them where they do not belong, and such texts reach logs.
func MaskTokens(text string) string {
	return tokenForm.ReplaceAllStringFunc(text, func(token string) string { return tokenKinds[token[:4]] })
}
