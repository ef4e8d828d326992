package diagnosis

import (
	"cmp"
	_ "embed" // the advice
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/attempt"
)

// A client takes its next step within clientLimit, and a person within personLimit, the lifetime of
// the page.
const (
	clientLimit = time.Minute
	personLimit = 10 * time.Minute
)

// expectations are the steps that have to follow others, and how soon.
var expectations = map[attempt.Kind]struct {
	next   attempt.Kind
	within time.Duration
}{
	attempt.Challenge:        {attempt.ResourceMetadata, clientLimit},
	attempt.ResourceMetadata: {attempt.ServerMetadata, clientLimit},
	attempt.ServerMetadata:   {attempt.Authorize, clientLimit},
	attempt.Authorize:        {attempt.Page, clientLimit},
	attempt.ClientMetadata:   {attempt.Page, clientLimit},
	attempt.Page:             {attempt.TokenJudged, personLimit},
	attempt.TokenJudged:      {attempt.CodeIssued, clientLimit},
	attempt.CodeIssued:       {attempt.Exchange, clientLimit},
	attempt.Exchange:         {attempt.Call, clientLimit},
	attempt.Refresh:          {attempt.Call, attempt.Renewal},
	attempt.Stream:           {attempt.Call, clientLimit},
}

const (
	noRegistration = "F4"  // a client cannot register itself; the server metadata name no endpoint for it
	noRefreshToken = "A47" // a client that could refresh gets no refresh token
	unknownToken   = "G7"  // a call with an ended access token
)

// judge sets State, Missing, Verdict and Hint. isUnknown is false for a client that is known from
// another attempt, so that it does not have to register itself.
func (a *Attempt) judge(now time.Time, isUnknown bool) {
	last := a.Last
	expected, expects := expectations[last.Kind]
	lacksRegistration := isUnknown && last.Kind == attempt.ServerMetadata && last.Rule == noRegistration
	lapsed := last.Outcome != attempt.Passed && last.Kind == attempt.Refresh
	isConnected := a.Progress == attempt.Used && !lapsed
	waitsSince := a.At
	if last.Kind == attempt.Refresh { // a refresh does not restart the wait for a call
		waitsSince = a.Begun
	}
	switch {
	case a.Doctor:
		a.State, a.Verdict = Ended, "A run of pasteport doctor, which prints its own report."
	case a.Progress == attempt.Over:
		reason, detail, _ := strings.Cut(last.Reason, ": ")
		a.State, a.Verdict, a.Hint = Ended, strings.TrimSpace("The connection has ended: "+
			cmp.Or(advice[reason+".verdict"], reason)+" "+detail), advice[reason+".hint"]
	case last.Kind == attempt.Registration && last.Rule == noRegistration:
		a.State, a.Verdict, a.Hint = Stopped, "The client has to register itself, and self-registration is off.",
			advice[noRegistration]
	case last.Outcome != attempt.Passed && !isConnected:
		a.State, a.Verdict, a.Hint = Stopped, "The attempt stopped at the step \""+NameOf(last.Kind)+"\": "+last.Reason,
			hintFor(last)
	case last.Outcome == attempt.Failed:
		a.State, a.Verdict, a.Hint = Connected, "The client is connected, but the step \""+NameOf(last.Kind)+
			"\" failed: "+last.Reason, hintFor(last)
	case isConnected || !expects:
		a.State, a.Verdict = Connected, "The client is connected and has used its token."
		lacksRefresh := func(s attempt.Step) bool { return s.Kind == attempt.Page && s.Rule == noRefreshToken }
		switch {
		case last.Outcome != attempt.Refused: // a passed step needs no hint
		case last.Kind == attempt.Call && last.Rule == unknownToken && slices.ContainsFunc(a.Steps, lacksRefresh):
			a.Hint = advice[noRefreshToken] // the access token has ended
		default:
			a.Hint = hintFor(last)
		}
	case now.Sub(waitsSince) < expected.within:
		a.State, a.Missing, a.Verdict = UnderWay, expected.next, "Waiting for the step \""+NameOf(expected.next)+"\"."
		if lacksRegistration {
			a.Verdict += " A client that has to register itself stops here, because self-registration is off."
			a.Hint = advice[noRegistration]
		}
	default:
		key := string(last.Kind)
		if lacksRegistration {
			key = "unregistered"
		}
		a.State, a.Missing, a.Verdict, a.Hint = HalfWay, expected.next, advice[key+".verdict"], advice[key+".hint"]
	}
}

// texts has one advice per line: a key, a tab and a text. The key of a remedy is the rule of the
// refusal. KIND.name is the name of a step, KIND.verdict and KIND.hint are for an attempt whose
// last step is of the kind, and REASON.verdict and REASON.hint for the reason for which a grant
// ended. A key in braces stands for its text in the lines after it.
//
//go:embed advice.txt
var texts string

// advice has the texts by their keys.
var advice = func() map[string]string {
	found, terms := map[string]string{}, []string{}
	for line := range strings.Lines(texts) {
		key, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		found[key] = strings.NewReplacer(terms...).Replace(text)
		if strings.HasPrefix(key, "{") {
			terms = append(terms, key, found[key])
		}
	}
	return found
}()

// NameOf returns the name of a step for people.
func NameOf(kind attempt.Kind) string {
	return cmp.Or(advice[string(kind)+".name"], strings.ReplaceAll(string(kind), "_", " "))
}

// hintFor returns the advice for the rule of a step, or for its outcome.
func hintFor(step attempt.Step) string {
	for rule := range strings.SplitSeq(step.Rule, ", ") {
		if hint, found := advice[rule]; found && rule != "" {
			return hint
		}
	}
	switch {
	case step.Outcome == attempt.Failed:
		return "The log has the cause under request " + step.Request + "."
	case step.Rule != "" && strings.Contains("ACDL", step.Rule[:1]): // what a client sends or publishes
		return advice["{maker}"]
	}
	return ""
}
