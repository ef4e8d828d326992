// Package oauth implements the rules of an OAuth 2.1 authorization server for a site whose users
// authenticate with an API token of the site. It does no I/O; the clock and the random source are
// parameters.
//
// Glossary
//
//	site, host      the operator of the protected MCP server, which issues API tokens to its users
//	host token      such a token, pasted once into the consent page and stored encrypted; it is
//	                decrypted only to verify it at the site, or for the gateway that sends it to
//	                the upstream server
//	client          an MCP client, named by the HTTPS URL of its metadata document (CIMD)
//	ticket          the sealed state of the consent page, so that a person approves exactly the
//	                request that the page showed
//	grant           the permission of one client, from the redemption of its code until it ends
//	secret          an access token, refresh token or code in clear; only its digest is stored
//	holder          a client that presents a secret
//	box, wrap       the encrypted host token, and its data key, encrypted for a holder
//
// A Go host writes a Config and implements BearerVerifier. The author of a store implements Store,
// with the snapshots of codes and grants. All else is for the packages of Pasteport.
//
// The aggregates are AuthorizationCode and AccessGrant; package client has the rules for clients. A
// code and its grant have the same id, that of the approved ticket:
//
//	         IssueCode          Redeem
//	(ticket) ---------> issued ---------> redeemed code
//	                      |                  |
//	                      | End              +--> active grant --End--> ended grant
//	                      v
//	                   withdrawn code
//
// An issued code expires by time. The code of a second approval of the ticket replaces it, unless
// both have the same value and the first is still valid (Supersedes). A replay of a redeemed code
// ends the grant (RFC 6749 §4.1.2).
//
// Only the newest refresh token of a grant rotates. A request with one of the last four that were
// replaced gets the newest tokens within the grace window; the one that was replaced last gets them
// also later, until its successor or an access token issued with the successor is used. Any other
// replaced refresh token is reuse and ends the grant (RFC 9700 §4.14.2).
package oauth
