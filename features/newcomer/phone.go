package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/pasteport/pasteport/features/chromium"
)

// The size of the phone in CSS pixels.
const (
	width  = 390
	height = 844
)

// phone is a browser window of a phone's size with touch input.
type phone struct {
	window context.Context
	leave  func() error
}

func openPhone(ctx context.Context) (*phone, error) {
	window, leave, err := chromium.Open(chromium.DejaVu)
	if err != nil {
		return nil, err
	}
	p := &phone{window, leave}
	return p, p.do(ctx, chromedp.EmulateViewport(width, height, chromedp.EmulateMobile, chromedp.EmulateTouch))
}

func (p *phone) close() error {
	if p == nil {
		return nil
	}
	return p.leave()
}

func (p *phone) do(ctx context.Context, steps ...chromedp.Action[chromedp.Void]) error {
	window, cancel := context.WithCancel(p.window)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	if err := chromedp.Do(window, steps...); err != nil {
		return fmt.Errorf("using the browser: %w", err)
	}
	return context.Cause(ctx)
}

// ask runs one action and returns its result.
func ask[T any](ctx context.Context, p *phone, action chromedp.Action[T]) (result T, err error) {
	err = p.do(ctx, func(ctx context.Context, t *chromedp.Target) (nothing chromedp.Void, err error) {
		result, err = action(ctx, t)
		return nothing, err
	})
	return result, err
}

func (p *phone) visits(ctx context.Context, address string) error {
	return p.do(ctx, chromedp.Navigate(address))
}

// pastes puts the token into the only field.
func (p *phone) pastes(ctx context.Context, token string) error {
	return p.do(ctx, chromedp.SendKeys(chromedp.CSS(`input[type="password"], input[type="text"]`), token))
}

// taps taps the button with this text, or the summary that opens a box.
func (p *phone) taps(ctx context.Context, words string) error {
	return p.do(ctx, chromedp.Tap(chromedp.Search(
		fmt.Sprintf(`//*[self::button or self::summary][normalize-space()=%q]`, words))))
}

// sees waits for a page with all the words, checks that it fits the screen, and takes a screenshot.
func (p *phone) sees(ctx context.Context, picture string, words ...string) error {
	text := ""
	for ctx.Err() == nil {
		// An error means that the next page is loading.
		if read, err := ask(ctx, p, chromedp.Evaluate[string]("document.body.innerText")); err == nil {
			text = read
		}
		if missing(text, words) == "" {
			return p.takes(ctx, picture)
		}
		select {
		case <-ctx.Done():
		case <-time.After(glance):
		}
	}
	return fmt.Errorf("the page does not say %q (%w) but\n%s", missing(text, words), context.Cause(ctx), text)
}

func missing(text string, words []string) string {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return word
		}
	}
	return ""
}

func (p *phone) takes(ctx context.Context, name string) error {
	wide, err := ask(ctx, p, chromedp.Evaluate[int]("document.documentElement.scrollWidth"))
	if err != nil {
		return err
	}
	if wide > width {
		return fmt.Errorf("the page %s is %d pixels wide and scrolls sideways", name, wide)
	}
	picture, err := ask(ctx, p, chromedp.FullScreenshot(100))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(left, name+".png"), picture, 0o644)
}
