package diagnosis

import (
	"cmp"
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
	// noRegistration is the rule under which a client cannot register itself. A step of the server
	// metadata has it if the document names no registration endpoint.
	noRegistration = "F4"
	// noRefreshToken is the rule under which a client that could refresh gets no refresh token.
	noRefreshToken = "A47"
	// unknownToken is the rule under which a call with an ended access token is refused.
	unknownToken = "G7"
)

// judge sets state, verdict and hint. A client that is known from another attempt does not have to
// register itself.
func (a *Attempt) judge(now time.Time, isUnknown bool) {
	last := a.Last
	expected, expects := expectations[last.Kind]
	lacksRegistration := isUnknown && last.Kind == attempt.ServerMetadata && last.Rule == noRegistration
	lapsed := last.Outcome != attempt.Passed && last.Kind == attempt.Refresh
	isConnected := a.Progress == attempt.Used && !lapsed
	waitsSince := a.At
	if last.Kind == attempt.Refresh { // which does not restart the wait
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
		if last.Outcome == attempt.Refused {
			a.Hint = cmp.Or(a.hintForLapse(), hintFor(last))
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

// hintForLapse returns the advice for a client whose access token has ended, and that could have
// had a refresh token.
func (a *Attempt) hintForLapse() string {
	lacksRefresh := slices.ContainsFunc(a.Steps, func(s attempt.Step) bool {
		return s.Kind == attempt.Page && s.Rule == noRefreshToken
	})
	if !lacksRefresh || a.Last.Kind != attempt.Call || a.Last.Rule != unknownToken {
		return ""
	}
	return advice[noRefreshToken]
}
