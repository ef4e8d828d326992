package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"golang.org/x/text/message/catalog"
)

// locales has a file of translations for each language. The files in its folder key replace the
// texts that say "token" by texts that say "key".
//
//go:embed locales
var locales embed.FS

// languages are the languages of the pages; the first is the default.
var languages = []language.Tag{language.English, language.German, language.French, language.Spanish, language.Japanese}

var (
	matcher  = language.NewMatcher(languages)
	printers = readAll()
)

// languageFor returns the best language for an Accept-Language header.
func languageFor(accept string) language.Tag {
	wanted, _, _ := language.ParseAcceptLanguage(accept) // an invalid header matches the default
	_, index, _ := matcher.Match(wanted...)
	return languages[index]
}

// readTranslations maps each English text to its translation for a CredentialWord.
func readTranslations(tag language.Tag, word string) catalog.Catalog {
	texts := catalog.NewBuilder(catalog.Fallback(languages[0]))
	for english, translated := range readLocale(tag, word) {
		if err := texts.SetString(tag, english, translated); err != nil {
			panic(fmt.Sprintf("pages: %s: %v", tag, err)) // the files are embedded and tested
		}
	}
	return texts
}

func readLocale(tag language.Tag, word string) map[string]string {
	texts := map[string]string{}
	if tag != languages[0] {
		readTexts(tag.String()+".json", texts)
	}
	if word == WordKey {
		readTexts("key/"+tag.String()+".json", texts)
	}
	return texts
}

// readTexts adds the texts of a file.
func readTexts(name string, texts map[string]string) {
	file, err := locales.ReadFile("locales/" + name)
	if err == nil {
		err = json.Unmarshal(file, &texts)
	}
	if err != nil {
		panic(fmt.Sprintf("pages: %s: %v", name, err))
	}
}

// vocabulary is a language and the CredentialWord in it.
type vocabulary struct {
	language language.Tag
	word     string
}

// readAll returns printers that read their texts at their first use, to keep the start fast.
func readAll() map[vocabulary]func() *message.Printer {
	printers := map[vocabulary]func() *message.Printer{}
	for _, tag := range languages {
		for _, word := range []string{WordToken, WordKey} {
			printers[vocabulary{tag, word}] = sync.OnceValue(func() *message.Printer {
				return message.NewPrinter(tag, message.Catalog(readTranslations(tag, word)))
			})
		}
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
	printer := printers[vocabulary{s.language, s.pages.appearance.CredentialWord}]()
	return printer.Sprintf(message.Key(text, format), parts...) // format is for a text without a translation
}

// tell is say with parts that are markup.
func (s sheet) tell(text string, parts ...markup) markup {
	texts := make([]any, len(parts))
	for i, part := range parts {
		texts[i] = part
	}
	return markup(s.say(text, texts...))
}

// space separates two sentences. Japanese has none after a full stop.
func (s sheet) space() markup {
	if s.language == language.Japanese {
		return ""
	}
	return " "
}
