package mcp

import (
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/domain/oauth"
)

// mountSlashed answers the address with a slash at its end as the endpoint itself, because people type both (F13). The document for it names
// this spelling, which its readers compare with the URL that they were given (RFC 9728 §3.3); tokens are for the one resource (A30).
func (s *Server) mountSlashed(e *echo.Echo, methods []string) {
	o := s.options
	o.Resource = oauth.NewResource(s.options.Resource.String() + "/")
	newMetadata(o).Mount(e, wellKnown+s.path+"/", o.Follow)
	e.Match(methods, s.path+"/", s.namingSlashed(s.protect(s.endpoint)))
}

// namingSlashed lets challenges name the document of the address with a slash.
func (s *Server) namingSlashed(next echo.HandlerFunc) echo.HandlerFunc {
	const name = "WWW-Authenticate"
	return func(c echo.Context) error {
		header := c.Response().Header()
		c.Response().Before(func() {
			if challenge := header.Get(name); challenge != "" {
				header.Set(name, strings.Replace(challenge, s.challenge.metadata+`"`, s.challenge.metadata+`/"`, 1))
			}
		})
		return next(c)
	}
}
