package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	xterm "golang.org/x/term"

	"github.com/pasteport/pasteport/domain/oauth"
)

// typedLimit is the number of bytes read from a pipe. It exceeds the longest valid token, so that
// ParseHostToken can refuse a longer one.
const typedLimit = 8 << 10

// ReadToken reads one token; on a terminal, without echo. Like the consent page, it
// accepts quotes, a header name or "Bearer" around the token.
func ReadToken(ctx context.Context, in io.Reader, prompt io.Writer) (oauth.HostToken, error) {
	text, err := readTyped(ctx, in, prompt)
	if err != nil {
		return oauth.HostToken{}, fmt.Errorf("reading the token: %w", err)
	}
	if strings.ContainsAny(strings.TrimSpace(text), "\r\n") {
		return oauth.HostToken{}, errors.New("reading the token: there is more than one line: give one token at a time")
	}
	token, err := oauth.ParseHostToken(text)
	if refused := new(oauth.Error); errors.As(err, &refused) {
		return oauth.HostToken{}, fmt.Errorf("reading the token: %s: copy the token alone, in one piece",
			refused.Description)
	}
	return token, err
}

func readTyped(ctx context.Context, in io.Reader, prompt io.Writer) (string, error) {
	if file, ok := in.(*os.File); ok && xterm.IsTerminal(int(file.Fd())) {
		_, _ = fmt.Fprint(prompt, "Token (it is not shown): ")
		defer func() { _, _ = fmt.Fprintln(prompt) }()
		return readHidden(ctx, int(file.Fd()))
	}
	piped, err := io.ReadAll(io.LimitReader(in, typedLimit))
	return string(piped), err
}

// readHidden reads a line without echo. It restores the terminal also after Ctrl-C.
func readHidden(ctx context.Context, terminal int) (string, error) {
	before, err := xterm.GetState(terminal)
	if err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := xterm.ReadPassword(terminal)
		read <- line{text, err}
	}()
	select {
	case typed := <-read:
		return string(typed.text), typed.err
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), xterm.Restore(terminal, before))
	}
}
