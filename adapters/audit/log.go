package audit

import (
	"context"
	"log/slog"

	"github.com/pasteport/pasteport/domain/audit"
)

// Log returns a recorder that logs each call in one line, with the message "call".
func Log(logger *slog.Logger, withArguments bool) audit.Recorder {
	return func(_ context.Context, call audit.Call) {
		attributes := []slog.Attr{
			slog.String("request", call.Request), slog.String("subject", call.Subject),
			slog.String("client", call.Client),
			slog.String("grant", call.Grant), slog.String("resource", call.Resource),
			slog.String("method", call.Method),
		}
		add := func(isSet bool, attribute slog.Attr) {
			if isSet {
				attributes = append(attributes, attribute)
			}
		}
		add(call.Name != "", slog.String("name", call.Name))
		add(call.Arguments != nil, slog.String("arguments_sha256", call.ArgumentsDigest()))
		add(withArguments && call.Arguments != nil, slog.String("arguments", string(call.Arguments)))
		attributes = append(attributes, slog.String("outcome", string(call.Outcome)))
		if call.Code != nil {
			attributes = append(attributes, slog.Int64("code", *call.Code))
		}
		add(call.Rule != "", slog.String("rule", call.Rule))
		add(call.Status != 0, slog.Int("status", call.Status))
		attributes = append(attributes, slog.Float64("duration_ms", milliseconds(call.Duration)))
		// The request's context would add its id twice.
		logger.LogAttrs(context.Background(), slog.LevelInfo, "call", attributes...)
	}
}

// Both returns a recorder that calls all given ones.
func Both(recorders ...audit.Recorder) audit.Recorder {
	return func(ctx context.Context, call audit.Call) {
		for _, record := range recorders {
			record(ctx, call)
		}
	}
}
