package audit

import (
	"context"
	"log/slog"

	"github.com/pasteport/pasteport/domain/audit"
)

// Log returns a recorder that logs each call in one line, with the message "call".
func Log(logger *slog.Logger, withArguments bool) audit.Recorder {
	return func(_ context.Context, call audit.Call) {
		optional := func(isSet bool, attribute slog.Attr) slog.Attr {
			if isSet {
				return attribute
			}
			return slog.Attr{} // which loggers leave out
		}
		var code slog.Attr
		if call.Code != nil {
			code = slog.Int64("code", *call.Code)
		}
		// With the request's context the logger would add the request id a second time.
		logger.LogAttrs(context.Background(), slog.LevelInfo, "call",
			slog.String("request", call.Request),
			slog.String("subject", call.Subject),
			optional(call.Account != "", slog.String("account", call.Account)),
			slog.String("client", call.Client),
			optional(call.App != "", slog.String("app", call.App)),
			slog.String("grant", call.Grant),
			slog.String("resource", call.Resource),
			slog.String("method", call.Method),
			optional(call.Name != "", slog.String("name", call.Name)),
			optional(call.Arguments != nil, slog.String("arguments_sha256", call.ArgumentsDigest())),
			optional(withArguments && call.Arguments != nil, slog.String("arguments", string(call.Arguments))),
			slog.String("outcome", string(call.Outcome)),
			code,
			optional(call.Rule != "", slog.String("rule", call.Rule)),
			optional(call.Status != 0, slog.Int("status", call.Status)),
			slog.Float64("duration_ms", milliseconds(call.Duration)))
	}
}
