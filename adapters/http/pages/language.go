package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
)

//go:embed locales/*.json
var locales embed.FS

// languages are those that the pages speak; whoever understands none of them reads the first one.
var languages = []language.Tag{language.English, language.German, language.French, language.Spanish, language.Japanese}

var (
	matcher  = language.NewMatcher(languages)
	drawings = drawAll()
)

// There are few Accept-Language headers, and all of a browser's requests bear the same.
const (
	headersKnown  = 256
	longestHeader = 100 // that is kept
)

var suitable, _ = lru.New[string, language.Tag](headersKnown) // fails only for a size below one

// languageFor finds the language that suits an Accept-Language header best.
func languageFor(accept string) language.Tag {
	if found, known := suitable.Get(accept); known {
		return found
	}
	wanted, _, _ := language.ParseAcceptLanguage(accept) // what cannot be read wants nothing
	_, index, _ := matcher.Match(wanted...)
	if len(accept) <= longestHeader {
		suitable.Add(accept, languages[index])
	}
	return languages[index]
}

// readTranslations maps each English text to that of the language.
func readTranslations(tag language.Tag) catalog.Catalog {
	texts := catalog.NewBuilder(catalog.Fallback(languages[0]))
	if tag == languages[0] {
		return texts
	}
	for english, translated := range readLocale(tag) {
		if err := texts.SetString(tag, english, translated); err != nil {
			panic(fmt.Sprintf("pages: %s: %v", tag, err)) // the files are embedded, so no build with this passes its specs
		}
	}
	return texts
}

func readLocale(tag language.Tag) (texts map[string]string) {
	file, err := locales.ReadFile("locales/" + tag.String() + ".json")
	if err == nil {
		err = json.Unmarshal(file, &texts)
	}
	if err != nil {
		panic(fmt.Sprintf("pages: %s: %v", tag, err))
	}
	return texts
}

// drawAll lets each language wait for its first reader, so that no start does.
func drawAll() map[language.Tag]func() *template.Template {
	drawn := map[language.Tag]func() *template.Template{}
	for _, tag := range languages {
		drawn[tag] = sync.OnceValue(func() *template.Template { return drawIn(tag) })
	}
	return drawn
}

// drawIn parses the templates in one language.
func drawIn(tag language.Tag) *template.Template {
	speak := message.NewPrinter(tag, message.Catalog(readTranslations(tag)))
	drawn := template.New("pages").Funcs(template.FuncMap{
		"lang": tag.String, "claim": claim, "host": host, "address": address, "name": name,
		"instant": instant, "machine": machine,
		"t": func(text string, parts ...any) template.HTML { return translate(speak, text, parts) },
	})
	for name, source := range readSources() {
		template.Must(drawn.New(name).Parse(translateFixed(speak, source)))
	}
	return drawn
}

// fixed is a text that is the same for every reader of a language.
var fixed = regexp.MustCompile(`{{t "([^"]*)"}}`)

// translateFixed translates the fixed texts of a template, so that no page has to.
func translateFixed(speak *message.Printer, source string) string {
	return fixed.ReplaceAllStringFunc(source, func(call string) string {
		return string(translate(speak, fixed.FindStringSubmatch(call)[1], nil))
	})
}

// readSources maps each template to its text.
func readSources() map[string]string {
	texts := map[string]string{}
	entries, _ := files.ReadDir(".") // what is embedded can be read
	for _, entry := range entries {
		text, _ := files.ReadFile(entry.Name())
		texts[entry.Name()] = string(text)
	}
	return texts
}

// translate puts the parts into the text. Only markup of our own is taken as it is; all else is escaped. A text without parts may
// be the site's own, in which a per cent sign is nothing but that.
func translate(speak *message.Printer, text string, parts []any) template.HTML {
	if len(parts) == 0 {
		return markup(template.HTMLEscapeString(speak.Sprintf(message.Key(text, strings.ReplaceAll(text, "%", "%%")))))
	}
	for i, part := range parts {
		if _, ours := part.(template.HTML); !ours {
			parts[i] = markup(template.HTMLEscaper(part))
		}
	}
	return markup(speak.Sprintf(message.Key(text, text), parts...))
}

// address marks up a host or a URL, which reads from left to right in every language.
func address(text string) template.HTML {
	return markup(`<bdi class="host" dir="ltr">` + escape(host(text)) + `</bdi>`)
}

// name marks up what the site calls itself.
func name(text string) template.HTML {
	return markup(`<bdi>` + template.HTMLEscapeString(text) + `</bdi>`)
}

// markup marks what was written or escaped here; nothing from outside gets there as it is, which the specs of hostile texts prove.
func markup(escaped string) template.HTML { return template.HTML(escaped) } //nolint:gosec // see above
