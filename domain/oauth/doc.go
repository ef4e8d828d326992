// Package oauth is the language of authorization: the rules of an OAuth 2.1 authorization server whose only credential is a
// token that the site gave out itself. It knows no wire, disk, clock or source of chance; those are handed in.
//
// Glossary
//
//	site, host      whoever runs the protected MCP server and gave its people API tokens
//	host token      such a token, pasted once into the consent page; opened again only to ask the site whether it still holds, or for
//	                the gateway that sends it to the upstream that gave it out
//	client          an MCP client, named by the HTTPS URL of its metadata document (CIMD)
//	ticket          the sealed memory of the consent page: what was shown is what is approved
//	grant           what a person allowed one client, from consent until it ends
//	secret          an access token, refresh token or code in clear; only its digest is ever stored
//
// The aggregates are ClientMetadata, AuthorizationCode and AccessGrant. A code and its grant have the same id, that of the approved ticket:
//
//	         IssueCode          Redeem
//	(ticket) ---------> issued ---------> redeemed code
//	                      |                  |
//	                      | End              +--> active grant --End--> ended grant
//	                      v
//	                   withdrawn code
//
// An issued code expires by time. A second approval of the ticket replaces it, unless it has the same value and still holds (Supersedes). A replay
// of a redeemed code ends the grant.
//
// Of refresh tokens only the newest generation rotates. The one before it is answered with its successor while the grace window is open and the
// successor unused. Every older one is reuse and ends the grant.
package oauth
