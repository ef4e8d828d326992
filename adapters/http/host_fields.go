package http

import (
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/adapters/http/pages"
	"github.com/pasteport/pasteport/application"
	"github.com/pasteport/pasteport/domain/credential"
	"github.com/pasteport/pasteport/domain/oauth"
)

const (
	tokenInput  = "bearer_token"
	fieldPrefix = "field_" // of the inputs for several fields
)

// inputs returns the names of the inputs for the token or the fields.
func (e *Endpoints) inputs() (names []string) {
	fields := e.server.Settings.HostFields
	if len(fields) == 0 {
		return []string{tokenInput}
	}
	for _, field := range fields {
		names = append(names, fieldPrefix+field.Name)
	}
	return names
}

// pasted reads the token or the fields from a form.
func (e *Endpoints) pasted(c echo.Context, form oauth.Parameters) application.Pasted {
	pasted := application.Pasted{
		Token:    form.Get(tokenInput),
		By:       e.RequesterOf(c),
		Reviewed: form.Get(reviewedInput),
	}
	if fields := e.server.Settings.HostFields; len(fields) > 0 {
		pasted.Fields = map[string]string{}
		for _, field := range fields {
			pasted.Fields[field.Name] = form.Get(fieldPrefix + field.Name)
		}
	}
	return pasted
}

// question is what a page asks for: the fields instead of the token, and the problem of the last
// attempt.
type question struct {
	fields  []pages.Field
	problem string
	retryIn string // seconds
}

// pageFields returns fields as a page shows them at first.
func pageFields(fields credential.Fields) (shown []pages.Field) {
	for _, field := range fields {
		shown = append(shown, pages.Field{
			Name:     field.Name,
			Label:    field.Label,
			Help:     field.Help,
			Value:    field.Default,
			Secret:   field.Secret,
			Optional: field.Optional,
		})
	}
	return shown
}

// entered returns fields with the values of a form that are not secrets.
func entered(fields credential.Fields, form oauth.Parameters) []pages.Field {
	shown := pageFields(fields)
	for i, field := range shown {
		if !field.Secret {
			shown[i].Value = form.Get(fieldPrefix + field.Name)
		}
	}
	return shown
}

// retryQuestion returns the question after a refused attempt, with the values that are not secrets;
// again is false without an error, and for one that no other input can mend.
func retryQuestion(fields credential.Fields, form oauth.Parameters, err error) (asked question, again bool) {
	asked.fields = entered(fields, form)
	if asked.problem, again = retryMessage(err, len(asked.fields) > 0); !again {
		return question{}, false
	}
	if kind, _ := oauth.KindOf(err); kind == oauth.TooManyGuesses {
		asked.retryIn = outcomeOf(err).retryAfter
	}
	wrong := new(credential.ValueError)
	isWrong := errors.As(err, &wrong)
	for i, field := range asked.fields {
		if isWrong && field.Name == wrong.Field.Name {
			asked.fields[i].Problem = fieldProblems[wrong.Reason]
			asked.problem = "Check the marked field."
		}
	}
	if len(fields) > 0 {
		return asked, true
	}
	switch {
	case wrong.Reason == credential.TooLong:
		asked.problem = "This is too long for a token. Paste the token alone, which has at most 4096 characters."
	case wrong.Reason != "":
		asked.problem = fieldProblems[wrong.Reason]
	case asked.problem == wrongToken && credential.HasQuotes(form.Get(tokenInput)):
		asked.problem = "This site does not know that token. It contains quotation marks: paste only what is between " +
			"them."
	}
	return asked, true
}

var fieldProblems = map[credential.Reason]string{
	credential.Missing:   "Fill in this field.",
	credential.Malformed: "This does not look right. Check that you copied all of it.",
	credential.TooLong:   "This is too long.",
	credential.Control:   "It contains a line break or another control character. Copy it again, in one piece.",
	credential.Issued:    "This belongs to an app that was connected here. Enter what this site gave to you instead.",
}

// wrongToken is the message about a token that the site does not know.
const wrongToken = "This site does not know that token. Check that you copied all of it and that it has not expired."

// retryMessage returns the message to show with the form again; again is as in retryQuestion.
func retryMessage(err error, fields bool) (message string, again bool) {
	kind, _ := oauth.KindOf(err)
	switch kind {
	case oauth.MissingHostToken:
		return "Paste your token first.", true
	case oauth.WrongHostToken:
		if fields {
			return "This site does not accept these values. Check that each is complete and that none has expired.",
				true
		}
		return wrongToken, true
	case oauth.OtherHostToken:
		return "Nothing has changed: this site does not name the same owner for the old and the new one, or the new " +
			"one may do less than these apps need.", true
	case oauth.HostTokenNotVerifiable:
		return "This site cannot check tokens just now. Nothing was granted; try again in a moment. If this lasts, " +
			"tell the people who run it.", true
	case oauth.MisconfiguredVerifier:
		return "This site cannot check tokens because of a mistake in its configuration. Nothing was granted; tell " +
			"the people who run it.", true
	case oauth.TooManyGuesses:
		return "Many wrong tokens were tried from your network, so one token a second is checked from there, and too " +
			"many wait.", true
	}
	return "", false
}
