package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/audit"
)

// callLine is the line of a call. Its fields are described in docs/audit.md.
type callLine struct {
	Time            string          `json:"time"`
	Request         string          `json:"request,omitempty"`
	Subject         string          `json:"subject"`
	Account         string          `json:"account,omitempty"`
	Client          string          `json:"client"`
	App             string          `json:"app,omitempty"`
	Grant           string          `json:"grant"`
	Resource        string          `json:"resource"`
	Method          string          `json:"method"`
	Name            string          `json:"name,omitempty"`
	ArgumentsDigest string          `json:"arguments_sha256,omitempty"`
	Arguments       json.RawMessage `json:"arguments,omitempty"`
	Outcome         audit.Outcome   `json:"outcome"`
	Code            *int64          `json:"code,omitempty"`
	Rule            string          `json:"rule,omitempty"`
	Status          int             `json:"status,omitempty"`
	Duration        float64         `json:"duration_ms"`
}

// The events of a file.
const (
	eventFile = "file" // the first line of a file
	eventTorn = "torn" // a crash cut off the line that was here, and it was removed
)

// eventLine is the line of an event of the file itself.
type eventLine struct {
	Time  string `json:"time"`
	Event string `json:"event"`           // "" in the line of a call
	Text  string `json:"text,omitempty"`  // the beginning of a torn line
	Bytes int64  `json:"bytes,omitempty"` // of the torn line
}

const timeFormat = "2006-01-02T15:04:05.000000Z"

func formatTime(at time.Time) string { return at.UTC().Format(timeFormat) }

func milliseconds(duration time.Duration) float64 { return float64(duration.Microseconds()) / 1000 }

// encodeCall returns the line of a call, without a line feed.
func encodeCall(call audit.Call, withArguments bool) []byte {
	line := callLine{
		Time:            formatTime(call.Time),
		Request:         call.Request,
		Subject:         call.Subject,
		Account:         call.Account,
		Client:          call.Client,
		App:             call.App,
		Grant:           call.Grant,
		Resource:        call.Resource,
		Method:          call.Method,
		Name:            call.Name,
		ArgumentsDigest: call.ArgumentsDigest(),
		Outcome:         call.Outcome,
		Code:            call.Code,
		Rule:            call.Rule,
		Status:          call.Status,
		Duration:        milliseconds(call.Duration),
	}
	if withArguments {
		line.Arguments = call.Arguments
	}
	return encode(line)
}

func encode(line any) []byte {
	text, err := json.Marshal(line)
	if err != nil { // encoding/json does not accept the arguments; their digest is enough
		call, _ := line.(callLine)
		call.Arguments = nil
		text, _ = json.Marshal(call)
	}
	return text
}

// link is the place of a line in a chain.
type link struct {
	Seq  int64  `json:"seq"`  // 1 for the first line
	Hash string `json:"hash"` // of the line; "" before the first
}

const (
	hashField  = `,"hash":"`
	hashSuffix = len(hashField) + 2*sha256.Size + len(`"}`)
)

// seal adds the number of the line, the hash of the line before it and the hash of its own text so
// far.
func (l link) seal(line []byte) ([]byte, link) {
	line = append(
		bytes.TrimSuffix(bytes.Clone(line), []byte("}")),
		fmt.Sprintf(`,"seq":%d,"prev":"%s"`, l.Seq+1, l.Hash)...)
	next := link{l.Seq + 1, hashOf(line)}
	return append(line, hashField+next.Hash+`"}`...), next
}

func hashOf(text []byte) string {
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}

// sealedLine is what Verify reads in a line.
type sealedLine struct {
	link
	Prev *string `json:"prev"`
	eventLine
}

// parseSealed returns an error for a line that has no hash, or another than that of its text.
func parseSealed(line []byte) (sealed sealedLine, err error) {
	text, suffix := line[:max(0, len(line)-hashSuffix)], string(line[max(0, len(line)-hashSuffix):])
	hash, isHash := strings.CutPrefix(suffix, hashField)
	hash, isClosed := strings.CutSuffix(hash, `"}`)
	if !isHash || !isClosed || json.Unmarshal(line, &sealed) != nil || sealed.Prev == nil || sealed.Seq < 1 {
		return sealedLine{}, errNoHash
	}
	if sealed.Hash = hash; hashOf(text) != hash {
		return sealed, errChanged
	}
	return sealed, nil
}
