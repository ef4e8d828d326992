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
	gatewayCode  = -32000
	gatewayWords = "The MCP server behind this gateway "
)

const mendBehind = "Check the MCP server behind the gateway, not the network between: it must run at the very address that upstream names, answer " +
	"there itself without a redirect, know the host name that it is asked under (else set upstream-host), accept the gateway's credential, and " +
	"begin its answers within upstream-timeout. With host-token it accepts the same tokens as the verifier. The gateway's log has the cause."

// behind is what Pasteport's gateway says in place of the MCP server behind it (U9, U10).
type behind string

func (b behind) Error() string { return string(b) }

// spokenFor is an error if the gateway has answered in place of the server behind it. The body can be read as before.
func spokenFor(response *http.Response) error {
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
	if json.Unmarshal(body, &message) != nil || message.Error.Code != gatewayCode || !strings.HasPrefix(message.Error.Message, gatewayWords) {
		return nil
	}
	return behind(message.Error.Message)
}
