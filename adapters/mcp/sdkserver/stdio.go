package sdkserver

import (
	"context"
	"fmt"
	"io"

	"github.com/modelcontextprotocol/go-sdk/auth"
	rpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pasteport/pasteport/adapters/mcp/stream"
	"github.com/pasteport/pasteport/domain/oauth"
)

// ServeStdio serves one local client in newline-delimited JSON, without OAuth, until in or ctx
// ends. Requests have the given caller, to which the tool policy applies.
func (s *Server) ServeStdio(ctx context.Context, in io.ReadCloser, out io.WriteCloser, caller oauth.Caller) error {
	local := localTransport{Transport: &sdk.IOTransport{Reader: in, Writer: out},
		info: (&stream.Identity{Sender: stream.Sender{Caller: caller}}).TokenInfo()}
	if err := s.mcp.Run(ctx, local); err != nil {
		return fmt.Errorf("serving stdio: %w", err)
	}
	return nil
}

type localTransport struct {
	sdk.Transport
	info *auth.TokenInfo
}

func (t localTransport) Connect(ctx context.Context) (sdk.Connection, error) {
	connection, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting stdio: %w", err)
	}
	return localConnection{connection, t.info}, nil
}

// localConnection adds the caller to each request.
type localConnection struct {
	sdk.Connection
	info *auth.TokenInfo
}

func (c localConnection) Read(ctx context.Context) (rpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if request, ok := m.(*rpc.Request); ok {
		request.Extra = &sdk.RequestExtra{TokenInfo: c.info}
	}
	return m, err
}
