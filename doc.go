// Package pasteport adds OAuth 2.1 to the MCP server of a site that already has API tokens. This
// package is empty; a Go site imports three others and takes four steps:
//
//	store, err := persistence.OpenSQLite("oauth.db")                    // 1 the OAuth store
//	authz, err := bootstrap.NewOAuthServer(oauth.Config{                // 2 the OAuth server
//		Issuer:       "https://cms.example.com",
//		VerifyBearer: func(token string) bool { return site.Knows(token) },
//	}, store)
//	server := bootstrap.NewMCPServer(tools, bootstrap.WithOAuth(authz)) // 3 the MCP server
//	err = server.Register(e)                                            // 4 its endpoints
//
// tools is an *mcp.Server of the official Go SDK, and e the site's Echo. With net/http, chi or Gin,
// call server.Handler instead of server.Register. The examples of package bootstrap handle every
// error.
//
// # Packages
//
// These packages are the API, with the types of other packages that their declarations use:
//
//   - bootstrap builds the OAuth server, the MCP server and the gateway
//   - domain/oauth has Config, and the interfaces Store and BearerVerifier to implement
//   - adapters/persistence opens a store; adapters/persistence/postgres and
//     adapters/persistence/mysql link the drivers of database servers
//   - adapters/audit writes the record of calls for bootstrap.WithAudit, and verifies it
//   - domain/diagnosis has WithoutDoctor, for the attempts that Trace returns
//   - bootstrap/pasteporttest tests a site with a real MCP client
//   - features/storespec is the contract of a Store
//
// All other packages may change in any release, even if Go lets you import them. The program is
// bootstrap/cmd/pasteport.
package pasteport
