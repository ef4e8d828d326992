package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
)

//go:embed locales/*.json
var locales embed.FS

// languages are the languages of the pages; the first is the default.
var languages = []language.Tag{language.English, language.German, language.French, language.Spanish, language.Japanese}

var (
	matcher  = language.NewMatcher(languages)
	printers = readAll()
)

// The limits of the cache of Accept-Language headers.
const (
	maxHeaders      = 256
	maxHeaderLength = 100
)

var matched, _ = lru.New[string, language.Tag](maxHeaders) // fails only for a size below one

// languageFor returns the best language for an Accept-Language header.
func languageFor(accept string) language.Tag {
	if found, known := matched.Get(accept); known {
		return found
	}
	wanted, _, _ := language.ParseAcceptLanguage(accept) // an invalid header matches the default
	_, index, _ := matcher.Match(wanted...)
	if len(accept) <= maxHeaderLength {
		matched.Add(accept, languages[index])
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
			panic(fmt.Sprintf("pages: %s: %v", tag, err)) // the files are embedded and tested
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

// readAll returns printers that read their texts at their first use, to keep the start fast.
func readAll() map[language.Tag]func() *message.Printer {
	printers := map[language.Tag]func() *message.Printer{}
	for _, tag := range languages {
		printers[tag] = sync.OnceValue(func() *message.Printer {
			return message.NewPrinter(tag, message.Catalog(readTranslations(tag)))
		})
	}
	return printers
}

// say translates a text and formats it with the parts. A text without parts may be the site's own,
// so its per cent signs are printed as they are.
func (s sheet) say(text string, parts ...any) string {
	format := text
	if len(parts) == 0 {
		format = strings.ReplaceAll(text, "%", "%%")
	}
	return printers[s.language]().Sprintf(message.Key(text, format), parts...)
}

// tell is say with parts that are markup.
func (s sheet) tell(text string, parts ...markup) markup {
	texts := make([]any, len(parts))
	for i, part := range parts {
		texts[i] = part
	}
	return markup(s.say(text, texts...))
}
