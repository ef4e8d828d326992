// Package chromium starts the browser for the specs and for the newcomer run.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/chromedp/chromedp"
)

// Open starts a Chromium with the fonts and a new profile, unless an option names one, and returns
// a window; leave ends the browser.
func Open(fonts Fonts, further ...chromedp.ExecAllocatorOption) (window context.Context, leave func() error,
	err error) {
	folder, err := os.MkdirTemp("", "fonts")
	if err != nil {
		return nil, nil, fmt.Errorf("making a folder for fontconfig: %w", err)
	}
	file, err := fonts.configure(folder)
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(folder))
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Env("FONTCONFIG_FILE="+file))
	if os.Geteuid() == 0 { // Chromium has no sandbox for root
		options = append(options, chromedp.NoSandbox)
	}
	allocator, release := chromedp.NewExecAllocator(context.Background(), append(options, further...)...)
	window, _ = chromedp.NewContext(allocator)
	leave = func() error {
		defer release()
		return errors.Join(chromedp.Cancel(window), os.RemoveAll(folder))
	}
	if err := chromedp.Do(window); err != nil { // with the window's own context, because the browser ends with it
		return nil, nil, errors.Join(fmt.Errorf("starting chromium: %w", err), leave())
	}
	return window, leave, nil
}

// Window opens another window of the browser with separate cookies, cache and storage.
func Window(browser context.Context) (window context.Context, closeWindow func() error, err error) {
	window, _ = chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	closeWindow = func() error { return chromedp.Cancel(window) }
	if err := chromedp.Do(window); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("opening a window: %w", err), closeWindow())
	}
	return window, closeWindow, nil
}
