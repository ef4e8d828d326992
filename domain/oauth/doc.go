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
// A code and the grant that it stands for are one aggregate, AccessGrant, because every event moves both:
//
//	         approve                redeem                 end(reason)
//	(nothing) ------> pending grant ------> active grant -----------> ended grant
//	                  code issued          code redeemed
//	                     |   |
//	                     |   +-- approved again: the same code with the same host token, else the earlier one is superseded
//	                     +------ the code expires, or the grant is ended: nothing can be redeemed
//
// Of refresh tokens only the newest generation rotates; the one before it is answered with its successor while the grace
// window is open and the successor unused; everything older is reuse and ends the grant.
package oauth
