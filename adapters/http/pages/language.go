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

// languages are those that the pages speak; whoever understands none of them reads the first one.
var languages = []language.Tag{language.English, language.German, language.French, language.Spanish, language.Japanese}

var (
	matcher  = language.NewMatcher(languages)
	printers = readAll()
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

// readAll lets each language wait for its first reader, so that no start does.
func readAll() map[language.Tag]func() *message.Printer {
	printers := map[language.Tag]func() *message.Printer{}
	for _, tag := range languages {
		printers[tag] = sync.OnceValue(func() *message.Printer { return message.NewPrinter(tag, message.Catalog(readTranslations(tag))) })
	}
	return printers
}

// say puts the parts into the text, in the reader's language. A text without parts may be the site's own, in which a per cent sign is nothing
// but that.
func (s sheet) say(text string, parts ...any) string {
	format := text
	if len(parts) == 0 {
		format = strings.ReplaceAll(text, "%", "%%")
	}
	return printers[s.language]().Sprintf(message.Key(text, format), parts...)
}

// tell is say for texts of our own, with parts that are marked up.
func (s sheet) tell(text string, parts ...markup) markup {
	said := make([]any, len(parts))
	for i, part := range parts {
		said[i] = part
	}
	return markup(s.say(text, said...))
}
