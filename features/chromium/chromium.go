// Package chromium starts the browser for the specs and for the newcomer run.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/chromedp/chromedp"
)

// ErrMissing means that no chromium is installed; .ci/run installs one.
var ErrMissing = errors.New("there is no chromium on the PATH")

// Open starts a Chromium with a new profile and returns a window; leave ends the browser.
func Open() (window context.Context, leave func() error, err error) {
	if _, err := exec.LookPath("chromium"); err != nil {
		return nil, nil, ErrMissing
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	if os.Geteuid() == 0 { // Chromium has no sandbox for root
		options = append(options, chromedp.NoSandbox)
	}
	allocator, release := chromedp.NewExecAllocator(context.Background(), options...)
	window, _ = chromedp.NewContext(allocator)
	leave = func() error {
		defer release()
		return chromedp.Cancel(window)
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
