package service

import "github.com/pasteport/pasteport/domain/oauth"

// localClient is the client of any program on this computer in development. mcp-remote and the MCP
// Inspector redirect to /oauth/callback, Claude Code to /callback, and VS Code to the root.
var localClient = oauth.HostedClient{
	Path: "local", Name: "A program on this computer, in development",
	RedirectURIs: []string{
		"http://127.0.0.1/", "http://localhost/", "http://127.0.0.1/callback", "http://localhost/callback",
		"http://127.0.0.1/oauth/callback", "http://localhost/oauth/callback",
	},
}

// DoctorDocument is the path, below the issuer, of the document of DoctorClient.
const DoctorDocument = oauth.HostedClientsPath + doctorPath

const doctorPath = "doctor"

// DoctorClient is the client with which doctor checks a whole login.
var DoctorClient = oauth.HostedClient{
	Path: doctorPath, Name: "Pasteport doctor, which checks this server",
	RedirectURIs: []string{"http://127.0.0.1/callback", "http://localhost/callback"},
}

// LocalClientID returns the client_id of the programs on this computer, in development.
func (c Config) LocalClientID() string { return c.Issuer + oauth.HostedClientsPath + localClient.Path }
