package features_test

import (
	"context"
	"net/url"

	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/bootstrap/service"
	"github.com/pasteport/pasteport/features/chromium"
)

// phoneWidth and phoneHeight are the first screen of a common phone, and decided is where the
// buttons of an ordinary page end, all in CSS pixels.
const phoneWidth, phoneHeight, decided = 390, 844, 900

// languages are those of the pages.
var languages = []string{"en", "de", "fr", "es", "ja"}

// placed is where an element of a page is, in CSS pixels from the page's top left corner.
type placed struct {
	Part              string
	Left, Top, Bottom float64
}

// placement lists the parts of the consent page in document order, which is the order of the
// keyboard and of screen readers.
const placement = `Array.from(document.querySelectorAll(
	"h1, dt, .warnings li, .grants li, [role=alert], form > label, form > input:not([type=hidden]), .actions button",
)).map(e => {
	const box = e.getBoundingClientRect()
	const part = {H1: "headline", DT: "fact", P: "problem", LABEL: "label", INPUT: "field"}[e.tagName] ||
		(e.closest(".warnings") ? "warning" : e.closest(".grants") ? "grant" : e.value)
	return {Part: part, Left: box.left + scrollX, Top: box.top + scrollY, Bottom: box.bottom + scrollY};
})`

func bottoms(parts []placed, names ...string) (all []float64) {
	for _, part := range parts {
		for _, name := range names {
			if part.Part == name {
				all = append(all, part.Bottom)
			}
		}
	}
	return all
}

// expectReadableOrder expects the parts below each other or side by side: who asks, the warnings
// and the rights before the fields and the buttons.
func expectReadableOrder(parts []placed) {
	GinkgoHelper()
	Expect(parts[0].Part).To(Equal("headline"))
	for i, part := range parts[1:] {
		before := parts[i]
		Expect(part.Top >= before.Bottom-1 || part.Top == before.Top && part.Left > before.Left).To(BeTrue(),
			"%v after %v", part, before)
	}
	fields, grants := bottoms(parts, "field"), bottoms(parts, "grant")
	Expect(fields).NotTo(BeEmpty())
	Expect(grants).NotTo(BeEmpty())
	Expect(bottoms(parts, "fact", "warning")).To(HaveEach(BeNumerically("<", grants[0])))
	Expect(append(grants, bottoms(parts, "problem")...)).To(HaveEach(BeNumerically("<", fields[0])))
	Expect(fields).To(HaveEach(BeNumerically("<", bottoms(parts, "approve")[0])))
}

var _ = Describe("The consent page on a phone", Ordered, ContinueOnFailure, Label("browser", "A43"), func() {
	var world *World
	var client *Client
	over := func(adjust ...func(*service.Config)) {
		world = NewWorld(adjust...)
		client = world.NewClient()
	}
	BeforeEach(func() { over() })
	asking := func(language string, change ...func(url.Values)) func(context.Context) Response {
		return func(ctx context.Context) Response {
			parameters := client.Request()
			for _, apply := range change {
				apply(parameters)
			}
			return visit(ctx, world.Issuer+"/oauth/authorize?"+parameters.Encode(), language)
		}
	}
	in := func(language string) func(context.Context) Response { return asking(language) }
	// threeScopes asks for three scopes and to stay connected.
	threeScopes := func(language string) func(context.Context) Response {
		return func(ctx context.Context) Response {
			over(articleScopes)
			return asking(language, set("scope", "read comment delete offline_access"))(ctx)
		}
	}
	// registered asks as a program on this computer that has registered itself.
	registered := func(language string) func(context.Context) Response {
		return func(ctx context.Context) Response {
			over(selfRegistration)
			answer := world.Register(ctx,
				map[string]any{"client_name": "Visual Studio Code", "redirect_uris": []string{client.Redirect}})
			client.ID = decode(answer)["client_id"].(string)
			return in(language)(ctx)
		}
	}
	// inEveryFont measures the page with each of the fonts.
	inEveryFont := func(ctx context.Context, page Response, judge func([]placed, *Browser)) {
		GinkgoHelper()
		address, _ := replayed(page)
		for _, fonts := range chromium.Common {
			By("with " + fonts.Sans)
			browser := ReaderBrowser(fonts)
			browser.Look(ctx, phoneWidth, phoneHeight, "light")
			browser.Do(ctx, chromedp.Navigate(address))
			judge(Ask(ctx, browser, chromedp.Evaluate[[]placed](placement)), browser)
		}
	}
	fields := func(language string) func(context.Context) Response {
		return func(ctx context.Context) Response {
			over(gatewayTo("http://127.0.0.1:1/mcp"),
				askingFor(addressUserAndKey, "X-Site: {url}", "Authorization: Basic {base64(user:token)}"))
			return in(language)(ctx)
		}
	}

	inEachLanguage := func(page string, in func(string) func(context.Context) Response) (entries []TableEntry) {
		for _, language := range languages {
			entries = append(entries, Entry(page+" in "+language, SpecTimeout(browserTime), in(language)))
		}
		return entries
	}

	It("is rendered with the named fonts, whatever this computer has", func(ctx SpecContext) {
		address, _ := replayed(in("en")(ctx))
		for _, fonts := range chromium.Common {
			browser := ReaderBrowser(fonts)
			browser.Do(ctx, chromedp.Navigate(address))
			Expect(browser.fontsOf(ctx, "label")).To(Equal([]string{fonts.Sans}))
			Expect(browser.fontsOf(ctx, ".host")).To(Equal([]string{fonts.Mono}))
		}
	}, SpecTimeout(browserTime))

	DescribeTable("has both buttons of an ordinary page within 900 pixels:",
		func(ctx SpecContext, state func(context.Context) Response) {
			inEveryFont(ctx, state(ctx), func(parts []placed, _ *Browser) {
				Expect(bottoms(parts, "approve", "deny")).
					To(And(HaveLen(2), HaveEach(BeNumerically("<=", decided))), "%v", parts)
			})
		},
		Entry("of a program on this computer", SpecTimeout(browserTime), in("en")),
		inEachLanguage("of a program that registered itself", registered),
		inEachLanguage("with three scopes", threeScopes),
		Entry("with a document that could not be checked", SpecTimeout(browserTime), uncheckedPage),
	)

	DescribeTable("says beside the name of an app that it is unverified, on a phone and on a desktop:",
		Label("A35"), func(ctx SpecContext, name, language string) {
			client = world.ClientWith("client_name", name)
			inEveryFont(ctx, in(language)(ctx), func(_ []placed, browser *Browser) {
				for _, width := range []int64{phoneWidth, 1280} {
					browser.Look(ctx, width, phoneHeight, "light")
					beside := Ask(ctx, browser, chromedp.Evaluate[bool](`(([name, mark]) =>
						mark.left >= name.right && mark.bottom <= name.bottom && mark.height < 30)(
						["q", "q + small"].map(e => document.querySelector(e).getBoundingClientRect()))`))
					Expect(beside).To(BeTrue(), "%d", width)
				}
			})
		},
		Entry(nil, SpecTimeout(browserTime), "Visual Studio Code", "en"),
		Entry(nil, SpecTimeout(browserTime), "Visual Studio Code", "fr"),
		Entry(nil, SpecTimeout(browserTime), "The Assistant of the Example Corporation for its Customers", "es"),
	)

	DescribeTable("shows who asks, every warning and the rights before the fields and the buttons, in the order of "+
		"the keyboard:",
		func(ctx SpecContext, state func(context.Context) Response) {
			inEveryFont(ctx, state(ctx), func(parts []placed, browser *Browser) {
				expectReadableOrder(parts)
				order := Ask(ctx, browser, chromedp.Evaluate[[]int](
					`Array.from(document.querySelectorAll("[tabindex]")).map(e => e.tabIndex)`))
				Expect(order).To(BeEmpty())
			})
		},
		inEachLanguage("of a program on this computer", in), inEachLanguage("with three fields", fields),
		Entry("with a logo and help for the token", SpecTimeout(browserTime), func(ctx context.Context) Response {
			over(func(config *service.Config) { config.Appearance = look })
			return in("de")(ctx)
		}),
		Entry("of a client whose redirect is elsewhere", SpecTimeout(browserTime), func(ctx context.Context) Response {
			client.Redirect = "https://client.example/callback"
			return in("fr")(ctx)
		}),
		Entry("of a client that registered itself", SpecTimeout(browserTime), registeredPage),
		Entry("with a document that could not be checked", SpecTimeout(browserTime), uncheckedPage),
		Entry("after a wrong token", SpecTimeout(browserTime), func(ctx context.Context) Response {
			return client.Consent(ctx).Approve(ctx, "demo_wrong")
		}),
	)
})
