package bootstrap

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/pasteport/pasteport/domain/oauth"
)

// MaskTokens returns a logger that replaces tokens, codes and client secrets of Pasteport by their
// kinds. NewOAuthServer does so with the logger of its Config; use it for the log of your requests,
// whose paths and agents clients choose.
func MaskTokens(logger *slog.Logger) *slog.Logger {
	if _, masks := logger.Handler().(maskingHandler); masks {
		return logger
	}
	return slog.New(maskingHandler{logger.Handler()})
}

type maskingHandler struct{ slog.Handler }

func (h maskingHandler) Handle(ctx context.Context, record slog.Record) error {
	masked := slog.NewRecord(record.Time, record.Level, oauth.MaskTokens(record.Message), record.PC)
	record.Attrs(func(attribute slog.Attr) bool {
		masked.AddAttrs(maskAll(attribute)...)
		return true
	})
	return h.Handler.Handle(ctx, masked)
}

func (h maskingHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return maskingHandler{h.Handler.WithAttrs(maskAll(attributes...))}
}

func (h maskingHandler) WithGroup(name string) slog.Handler {
	return maskingHandler{h.Handler.WithGroup(name)}
}

func maskAll(attributes ...slog.Attr) []slog.Attr {
	masked := make([]slog.Attr, 0, len(attributes))
	for _, attribute := range attributes {
		value := attribute.Value.Resolve()
		switch value.Kind() {
		case slog.KindGroup:
			value = slog.GroupValue(maskAll(value.Group()...)...)
		case slog.KindString, slog.KindAny: // such as an error, the value of a panic, or bytes
			text := fmt.Sprintf("%s", value.Any())
			if safe := oauth.MaskTokens(text); safe != text {
				value = slog.StringValue(safe)
			}
		}
		masked = append(masked, slog.Attr{Key: attribute.Key, Value: value})
	}
	return masked
}
