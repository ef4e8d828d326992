package client

var (
	ForbiddenSchemes = forbiddenSchemes
	KnownAppSchemes  = knownAppSchemes
	ParseRedirectURI = parseRedirectURI
	Matches          = matches
)

const MaxRedirectURILength = maxRedirectURILength
