package features_test

import (
	"context"
	"errors"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/css"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/chromium"
	"github.com/pasteport/pasteport/features/suite"
)

// browserTime is the time limit of a spec that may start a Chromium on a busy machine.
const browserTime = time.Minute

// Browser is a window of a real Chromium with its own browser context.
type Browser struct{ window context.Context }

// chromiums are the Chromiums that the specs of this process share, by their fonts. The specs of a
// process run one after the other.
var chromiums = map[chromium.Fonts]*sharedChromium{}

// sharedChromium has one window for all specs that only read a page, because opening a window takes
// as long as several pages.
type sharedChromium struct {
	context context.Context
	quit    func() error
	reader  *Browser
}

// chromiumWith starts a Chromium with the fonts unless one runs. It ends with the process.
func chromiumWith(fonts chromium.Fonts) *sharedChromium {
	GinkgoHelper()
	suite.Needs("browser")
	if chromiums[fonts] == nil {
		browser, quit, err := chromium.Open(fonts)
		Expect(err).NotTo(HaveOccurred())
		chromiums[fonts] = &sharedChromium{context: browser, quit: quit}
	}
	return chromiums[fonts]
}

var _ = AfterSuite(func() {
	for _, running := range chromiums {
		Expect(running.quit()).To(Succeed())
	}
})

// ReaderBrowser is a window for specs that only read a page.
func ReaderBrowser(fonts chromium.Fonts) *Browser {
	GinkgoHelper()
	running := chromiumWith(fonts)
	if running.reader == nil {
		window, _, err := chromium.Window(running.context)
		Expect(err).NotTo(HaveOccurred())
		running.reader = &Browser{window}
	}
	return running.reader
}

func NewBrowser() *Browser {
	GinkgoHelper()
	window, closeWindow, err := chromium.Window(chromiumWith(chromium.DejaVu).context)
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

// Text waits for the element and returns its visible text. It retries when a new page removes the
// element meanwhile.
func (b *Browser) Text(ctx context.Context, element chromedp.CSS) (text string) {
	GinkgoHelper()
	window, cancel := context.WithCancel(b.window)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	read := func(ctx context.Context, t *chromedp.Target) (nothing chromedp.Void, err error) {
		text, err = chromedp.Text(element)(ctx, t)
		return nothing, err
	}
	Eventually(func() error {
		return chromedp.Do(window, read)
	}).WithContext(ctx).WithTimeout(patience).Should(Succeed())
	return text
}

func (b *Browser) fontsOf(ctx context.Context, element string) (names []string) {
	GinkgoHelper()
	b.Do(ctx, func(ctx context.Context, t *chromedp.Target) (nothing chromedp.Void, err error) {
		_, domErr := cdp.Call(ctx, t, dom.Enable, dom.EnableParams{})
		_, cssErr := cdp.Call(ctx, t, css.Enable, cdp.Empty{})
		document, err := cdp.Call(ctx, t, dom.GetDocument, dom.GetDocumentParams{})
		if err = errors.Join(domErr, cssErr, err); err != nil {
			return nothing, err
		}
		node, err := cdp.Call(ctx, t, dom.QuerySelector,
			dom.QuerySelectorParams{NodeID: document.Root.NodeID, Selector: element})
		if err != nil {
			return nothing, err
		}
		used, err := cdp.Call(ctx, t, css.GetPlatformFontsForNode,
			css.GetPlatformFontsForNodeParams{NodeID: node.NodeID})
		if err != nil {
			return nothing, err
		}
		for _, font := range used.Fonts {
			names = append(names, font.FamilyName)
		}
		return nothing, nil
	})
	return names
}

// Frames returns the addresses of the page's frames that are shown, and of those that the browser
// refused.
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
	preference := emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	b.Do(ctx, chromedp.EmulateViewport(width, height),
		func(ctx context.Context, t *chromedp.Target) (nothing chromedp.Void, err error) {
			_, err = cdp.Call(ctx, t, emulation.SetEmulatedMedia, preference)
			return nothing, err
		})
}
