package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/audit"
)

// Log returns a recorder that logs each call in one line, with the message "call".
func Log(logger *slog.Logger, withArguments bool) audit.Recorder {
	return func(_ context.Context, call audit.Call) {
		// With the request's context the logger would add the request id a second time.
		logger.LogAttrs(context.Background(), slog.LevelInfo, "call", attributes(call, withArguments)...)
	}
}

// attributes are the fields of a call, which docs/audit.md describes.
func attributes(call audit.Call, withArguments bool) []slog.Attr {
	optional := func(isSet bool, key string, value any) slog.Attr {
		if isSet {
			return slog.Any(key, value)
		}
		return slog.Attr{} // which loggers leave out
	}
	return []slog.Attr{
		optional(call.Request != "", "request", call.Request),
		slog.String("subject", call.Subject),
		optional(call.Account != "", "account", call.Account),
		slog.String("client", call.Client),
		optional(call.App != "", "app", call.App),
		slog.String("grant", call.Grant),
		slog.String("resource", call.Resource),
		slog.String("method", call.Method),
		optional(call.Name != "", "name", call.Name),
		optional(call.Arguments != nil, "arguments_sha256", hashOf(call.Arguments)),
		optional(withArguments && json.Valid(call.Arguments), "arguments", json.RawMessage(call.Arguments)),
		slog.String("outcome", string(call.Outcome)),
		optional(call.Code != nil, "code", *cmp.Or(call.Code, new(int64))),
		optional(call.Rule != "", "rule", call.Rule),
		optional(call.Status != 0, "status", call.Status),
		slog.Float64("duration_ms", float64(call.Duration.Microseconds())/1000),
	}
}

// encode returns a line of JSON without a line feed.
func encode(at time.Time, fields ...slog.Attr) []byte {
	var line bytes.Buffer
	handler := slog.NewJSONHandler(&line, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, field slog.Attr) slog.Attr {
			if field.Key == slog.LevelKey || field.Key == slog.MessageKey {
				return slog.Attr{}
			}
			return field
		},
	})
	record := slog.Record{}
	record.AddAttrs(slog.String("time", at.UTC().Format("2006-01-02T15:04:05.000000Z")))
	record.AddAttrs(fields...)
	_ = handler.Handle(context.Background(), record) // a buffer accepts all
	return bytes.TrimSuffix(line.Bytes(), []byte("\n"))
}

// The events of a file, which docs/audit.md describes.
const (
	eventFile = "file" // the first line of a file
	eventTorn = "torn" // a crash cut off the line that was here, and it was removed
)

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

func hashOf(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }

// sealedLine is what Verify reads in a line.
type sealedLine struct {
	link
	Time  time.Time `json:"time"`
	Prev  *string   `json:"prev"`
	Event string    `json:"event"` // "" in the line of a call
	Bytes int64     `json:"bytes"` // of a torn line
}

// parseSealed returns an error for a line that has no hash, or another than that of its text.
func parseSealed(line []byte) (sealed sealedLine, err error) {
	text, suffix := line[:max(0, len(line)-hashSuffix)], string(line[max(0, len(line)-hashSuffix):])
	hash, isHash := strings.CutPrefix(suffix, hashField)
	hash, isClosed := strings.CutSuffix(hash, `"}`)
	if !isHash || !isClosed || json.Unmarshal(line, &sealed) != nil || sealed.Prev == nil || sealed.Seq < 1 {
		return sealedLine{}, errors.New("it is not a line of an audit with a chain")
	}
	if sealed.Hash = hash; hashOf(text) != hash {
		return sealed, errors.New("it was changed: its text does not have the hash that it carries")
	}
	return sealed, nil
}
