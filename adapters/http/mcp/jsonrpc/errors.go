package jsonrpc

import (
	"encoding/json"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// CodeRefused is in the range of JSON-RPC for errors of servers.
const CodeRefused = -32001

// WriteError answers with a JSON-RPC error without an id.
func WriteError(w http.ResponseWriter, status int, message string) {
	WriteErrorFor(w, status, nil, sdk.CodeInvalidRequest, message)
}

// WriteErrorFor answers with a JSON-RPC error for the request with that id.
func WriteErrorFor(w http.ResponseWriter, status int, id []byte, code int64, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(errorFor(id, code, message))
}

// errorFor returns a JSON-RPC error response. Without a valid id it has none, because MCP's schema does not allow null.
func errorFor(id []byte, code int64, message string) []byte {
	response := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Error   struct {
			Code    int64  `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}{Version: "2.0"}
	if json.Valid(id) && string(id) != "null" {
		response.ID = id
	}
	response.Error.Code, response.Error.Message = code, message
	body, _ := json.Marshal(response) // strings, numbers and valid JSON always encode
	return body
}
