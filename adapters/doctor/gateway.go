package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

const (
	gatewayCode   = -32000
	gatewayPrefix = "The MCP server behind this gateway "
)

const mendUpstream = "Check the MCP server behind the gateway, not the network between: it must run at the exact address in upstream, respond " +
	"there without a redirect, accept the host name of the request (else set upstream-host) and the gateway's credential, and " +
	"start its responses within upstream-timeout. With host-token, it must accept the same tokens as the verifier. The gateway's log has the cause."

// behind is the error of Pasteport's gateway about the MCP server behind it (U9, U10).
type behind string

func (b behind) Error() string { return string(b) }

// gatewayFailure returns an error if the gateway responded in place of the server behind it. The body stays readable.
func gatewayFailure(response *http.Response) error {
	if response.StatusCode < http.StatusInternalServerError {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return fmt.Errorf("reading an error: %w", err)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(body), response.Body}
	var message struct {
		Error struct {
			Code    int
			Message string
		}
	}
	if json.Unmarshal(body, &message) != nil || message.Error.Code != gatewayCode || !strings.HasPrefix(message.Error.Message, gatewayPrefix) {
		return nil
	}
	return behind(message.Error.Message)
}
