package features_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/chromium"
)

// browserTime is the time limit of a spec that may start a Chromium on a busy machine.
const browserTime = time.Minute

// Browser is a window of a real Chromium with its own browser context.
type Browser struct{ window context.Context }

// startBrowser starts the Chromium that the specs of this process share.
var startBrowser = sync.OnceValues(func() (browser context.Context, err error) {
	browser, quitBrowser, err = chromium.Open()
	return browser, err
})

var quitBrowser func() error

var _ = AfterSuite(func() {
	if quitBrowser != nil {
		Expect(quitBrowser()).To(Succeed())
	}
})

// NewBrowser opens a window that closes with the spec. Without a Chromium the spec is skipped; .ci/run installs one.
func NewBrowser() *Browser {
	GinkgoHelper()
	browser, err := startBrowser()
	if errors.Is(err, chromium.ErrMissing) {
		Skip(err.Error())
	}
	Expect(err).NotTo(HaveOccurred())
	window, closeWindow, err := chromium.Window(browser)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(closeWindow()).To(Succeed()) })
	return &Browser{window}
}

// Do runs steps in the browser within the spec's time limit.
func (b *Browser) Do(ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	GinkgoHelper()
	window, cancel := context.WithCancel(b.window)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	Expect(chromedp.Do(window, steps...)).To(Succeed())
}

// Text waits for the element and returns its visible text. It retries when a new page removes the element meanwhile.
func (b *Browser) Text(ctx context.Context, element chromedp.CSS) (text string) {
	GinkgoHelper()
	window, cancel := context.WithCancel(b.window)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	read := func(ctx context.Context, t *chromedp.Target) (nothing chromedp.Void, err error) {
		text, err = chromedp.Text(element)(ctx, t)
		return nothing, err
	}
	Eventually(func() error { return chromedp.Do(window, read) }).WithContext(ctx).WithTimeout(patience).Should(Succeed())
	return text
}

// Frames returns the addresses of the page's frames that are shown, and of those that the browser refused.
func (b *Browser) Frames(ctx context.Context) (shown, refused []string) {
	GinkgoHelper()
	b.Do(ctx, func(ctx context.Context, t *chromedp.Target) (nothing chromedp.Void, err error) {
		tree, err := cdp.Call(ctx, t, page.GetFrameTree, cdp.Empty{})
		if err != nil {
			return nothing, err
		}
		for _, child := range tree.FrameTree.ChildFrames {
			if child.Frame.UnreachableURL != "" {
				refused = append(refused, child.Frame.UnreachableURL)
			} else {
				shown = append(shown, child.Frame.URL)
			}
		}
		return nothing, nil
	})
	return shown, refused
}

// Ask runs one action and returns its result.
func Ask[T any](ctx context.Context, b *Browser, action chromedp.Action[T]) (result T) {
	GinkgoHelper()
	b.Do(ctx, func(ctx context.Context, t *chromedp.Target) (nothing chromedp.Void, err error) {
		result, err = action(ctx, t)
		return nothing, err
	})
	return result
}

// Look sets the size of the window in CSS pixels and the preferred colour scheme.
func (b *Browser) Look(ctx context.Context, width, height int64, scheme string) {
	GinkgoHelper()
	preference := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	b.Do(ctx, chromedp.EmulateViewport(width, height), func(ctx context.Context, t *chromedp.Target) (nothing chromedp.Void, err error) {
		_, err = cdp.Call(ctx, t, emulation.SetEmulatedMedia, preference)
		return nothing, err
	})
}
