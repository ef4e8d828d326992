package pages

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/a-h/templ"
	"github.com/lucasb-eyer/go-colorful"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Appearance is the part of the pages that a site can change. The zero value is the default.
type Appearance struct {
	Name           string `set:"site-name" unset:"the issuer's host; without an upstream, \"Demo site\"" example:"The Gazette" doc:"name of the site on the pages, at most 60 characters"`
	Accent         string `set:"accent" unset:"#0b5a4a" example:"'#7c2d12'" pattern:"^(#([0-9a-fA-F]{3}){1,2})?$" allowed:"a colour such as '#0b5a4a', in quotes" doc:"colour of buttons and links; adjusted to a readable contrast"`
	Logo           []byte // PNG, JPEG, WebP or SVG, at most 12 KiB; it is embedded in the page
	TokenHelp      string `set:"token-help" example:"https://cms.example.com/account/tokens" doc:"URL of the page where people find their token"`
	CredentialWord string `set:"credential-word" default:"token" choices:"token,key" example:"key" doc:"what the pages call the site's credential: token or key"`
}

// The values of CredentialWord.
const (
	WordToken = "token"
	WordKey   = "key"
)

const (
	maxSiteName = 60
	maxLogo     = 12 << 10
)

// Check returns all mistakes in one error.
func (a Appearance) Check() error {
	var mistakes []error
	if len([]rune(clean(a.Name))) > maxSiteName {
		mistakes = append(mistakes, oauth.NewMistake("Appearance.Name", "is longer than %d characters", maxSiteName))
	}
	if _, err := colorful.Hex(a.Accent); a.Accent != "" && err != nil {
		mistakes = append(mistakes, oauth.NewMistake("Appearance.Accent", "is %q: write a colour as #0b5a4a", a.Accent))
	}
	if _, known := logoType(a.Logo); len(a.Logo) > maxLogo || len(a.Logo) > 0 && !known {
		mistakes = append(mistakes,
			oauth.NewMistake("Appearance.Logo", "is not a PNG, JPEG, WebP or SVG of at most 12 KiB"))
	}
	if u, err := url.Parse(a.TokenHelp); a.TokenHelp != "" &&
		(err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		mistakes = append(mistakes,
			oauth.NewMistake("Appearance.TokenHelp", "is %q: give the address of a web page", a.TokenHelp))
	}
	switch a.CredentialWord {
	case "", WordToken, WordKey:
	default:
		mistakes = append(mistakes, oauth.NewMistake("Appearance.CredentialWord", "is %q: write %s or %s",
			a.CredentialWord, WordToken, WordKey))
	}
	return errors.Join(mistakes...)
}

func logoType(logo []byte) (media string, known bool) {
	media = http.DetectContentType(logo)
	switch text := strings.TrimSpace(string(logo)); {
	case media == "image/png", media == "image/jpeg", media == "image/webp":
		return media, true
	case strings.HasPrefix(text, "<svg"), strings.HasPrefix(text, "<?xml") && strings.Contains(text, "<svg"):
		return "image/svg+xml", true
	}
	return "", false
}

// logo returns the picture as a data URL. Browsers run no script in a picture of an img element.
func (a Appearance) logo() templ.SafeURL {
	media, known := logoType(a.Logo)
	if !known {
		return ""
	}
	return templ.SafeURL("data:" + media + ";base64," + base64.StdEncoding.EncodeToString(a.Logo))
}

// minContrast is the least contrast of text and its background (WCAG 2.2, 1.4.3 demands 4.5).
const minContrast = 4.6

var (
	white, black   = colorful.Color{R: 1, G: 1, B: 1}, colorful.Color{}
	darkBackground = colorful.Color{R: 0x15 / 255.0, G: 0x1e / 255.0, B: 0x1c / 255.0}
)

// colours returns a style that overrides the colours of style.css.
func (a Appearance) colours() string {
	accent, err := colorful.Hex(a.Accent)
	if err != nil {
		return ""
	}
	light, dark := blendFor(accent, black, white), blendFor(accent, white, darkBackground)
	return fmt.Sprintf(
		":root{--key:%s;--key-deep:%s;--on-key:#fff}@media(prefers-color-scheme:dark){:root{--key:%s;--key-deep:%s;"+
			"--on-key:%s}}",
		light.Hex(), light.BlendLab(black, .2).Clamped().Hex(), dark.Hex(), dark.BlendLab(white, .3).Clamped().Hex(),
		darkBackground.Hex())
}

// blendFor blends a colour towards another until it has enough contrast to the background.
func blendFor(color, towards, background colorful.Color) colorful.Color {
	for weight := 0.0; weight < 1; weight += .02 {
		if blended := color.BlendLab(towards, weight).Clamped(); contrast(blended, background) >= minContrast {
			return blended
		}
	}
	return towards
}

// contrast returns the contrast ratio of WCAG 2.2.
func contrast(a, b colorful.Color) float64 {
	return (max(luminance(a), luminance(b)) + .05) / (min(luminance(a), luminance(b)) + .05)
}

func luminance(c colorful.Color) float64 {
	r, g, b := c.LinearRgb()
	return .2126*r + .7152*g + .0722*b
}
