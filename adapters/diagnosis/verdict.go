package diagnosis

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/connection"
)

// A client takes its next step within clientLimit, and a person within personLimit, the lifetime of
// the page.
const (
	clientLimit = time.Minute
	personLimit = 10 * time.Minute
)

// expectations are the steps that have to follow others, and how soon.
var expectations = map[connection.Kind]struct {
	next   connection.Kind
	within time.Duration
}{
	connection.Challenge:        {connection.ResourceMetadata, clientLimit},
	connection.ResourceMetadata: {connection.ServerMetadata, clientLimit},
	connection.ServerMetadata:   {connection.Authorize, clientLimit},
	connection.Authorize:        {connection.Page, clientLimit},
	connection.ClientMetadata:   {connection.Page, clientLimit},
	connection.Page:             {connection.TokenJudged, personLimit},
	connection.TokenJudged:      {connection.CodeIssued, clientLimit},
	connection.CodeIssued:       {connection.Exchange, clientLimit},
	connection.Exchange:         {connection.Call, clientLimit},
	connection.Refresh:          {connection.Call, renewal},
	connection.Stream:           {connection.Call, clientLimit},
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
	lacksRegistration := isUnknown && last.Kind == connection.ServerMetadata && last.Rule == noRegistration
	lapsed := last.Outcome != connection.Passed && last.Kind == connection.Refresh
	isConnected := a.Progress == connection.Used && !lapsed
	waitsSince := a.At
	if last.Kind == connection.Refresh { // which does not restart the wait
		waitsSince = a.Begun
	}
	switch {
	case a.Doctor:
		a.State, a.Verdict = Ended, "A run of pasteport doctor, which prints its own report."
	case a.Progress == connection.Over:
		reason, detail, _ := strings.Cut(last.Reason, ": ")
		a.State, a.Verdict, a.Hint = Ended, strings.TrimSpace("The connection has ended: "+
			cmp.Or(advice[reason+".verdict"], reason)+" "+detail), advice[reason+".hint"]
	case last.Kind == connection.Registration && last.Rule == noRegistration:
		a.State, a.Verdict, a.Hint = Stopped, "The client has to register itself, and self-registration is off.",
			advice[noRegistration]
	case last.Outcome != connection.Passed && !isConnected:
		a.State, a.Verdict, a.Hint = Stopped, "The attempt stopped at the step \""+NameOf(last.Kind)+"\": "+last.Reason,
			hintFor(last)
	case last.Outcome == connection.Failed:
		a.State, a.Verdict, a.Hint = Connected, "The client is connected, but the step \""+NameOf(last.Kind)+
			"\" failed: "+last.Reason, hintFor(last)
	case isConnected || !expects:
		a.State, a.Verdict = Connected, "The client is connected and has used its token."
		if last.Outcome == connection.Refused {
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
	lacksRefresh := slices.ContainsFunc(a.Steps, func(s connection.Step) bool {
		return s.Kind == connection.Page && s.Rule == noRefreshToken
	})
	if !lacksRefresh || a.Last.Kind != connection.Call || a.Last.Rule != unknownToken {
		return ""
	}
	return advice[noRefreshToken]
}
