package jsonrpc

import (
	"encoding/json"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// CodeRefused is of the range that JSON-RPC leaves to servers.
const CodeRefused = -32001

// WriteError answers with a JSON-RPC error that belongs to no request.
func WriteError(w http.ResponseWriter, status int, message string) {
	WriteErrorFor(w, status, nil, sdk.CodeInvalidRequest, message)
}

// WriteErrorFor answers with a JSON-RPC error for the request of that id.
func WriteErrorFor(w http.ResponseWriter, status int, id []byte, code int64, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(errorFor(id, code, message))
}

// errorFor is a JSON-RPC error response to the request of that id. Without one it has no id: MCP's schema knows no null there.
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
