package http

import (
	"net/http"

	"github.com/pasteport/pasteport/domain/oauth"
)

type explanation struct{ title, text, advice, detail string }

// explanations tell a person what happened and what to do. They contain no input of the request (A40).
var explanations = map[oauth.Kind]explanation{
	oauth.MalformedClientID:     {title: "This app cannot be identified", text: "The address that it gives as its identity is not one that this site can look up.", advice: tellMaker},
	oauth.ClientUnreachable:     {title: "This app cannot be looked up", text: "Its published description could not be fetched.", advice: "Try again in a moment. If it stays like this, tell the maker of the app."},
	oauth.InvalidClientDocument: {title: "This app is not described correctly", text: "The description that the app publishes is not valid, so this site cannot identify the app.", advice: tellMaker},
	oauth.UnsupportedClient:     {title: "This app needs something that this site does not offer", text: "Its published description asks for a way to sign in that is not available here.", advice: tellMaker},
	oauth.ClientNotAllowed:      {title: "This app is not allowed here", text: "The operator of this site does not let this app connect."},
	oauth.ClientBusy:            {title: "Too many requests just now", text: "Other apps are being looked up.", advice: "Wait a moment and start again in your app."},
	oauth.UnregisteredRedirect:  {title: "This app requests a redirect to an address that it does not list", text: "To protect you, nothing was sent there.", advice: tellMaker},
	oauth.StateTooLong:          {title: tooMuchState, text: "It sends a “state” of more than 4096 characters. Nothing was granted.", advice: tellMaker},
	oauth.StateNotPrintable:     {title: tooMuchState, text: "It sends a “state” with characters that are not printable ASCII. Nothing was granted.", advice: tellMaker},
	oauth.InvalidTicket:         {title: "This form is not valid", text: "Nothing was granted.", advice: startAgain},
	oauth.ExpiredTicket:         {title: "This form is too old", text: "Nothing was granted.", advice: startAgain},
	oauth.UsedTicket:            {title: "This form has been used already", text: "Each form can be answered once.", advice: "If your app is not connected, start again there."},
}

const (
	tellMaker    = "Tell the maker of the app; nothing can be done here."
	tooMuchState = "This app sends a value that this site cannot return"
	startAgain   = "Start again in your app."
)

func explain(err error, o outcome) explanation {
	kind, refused := oauth.KindOf(err)
	if known, found := explanations[kind]; found {
		return known
	}
	if !refused || o.status >= http.StatusInternalServerError {
		return explanation{title: "This site cannot answer just now", text: "Nothing was granted.", advice: "Try again in a moment."}
	}
	return explanation{title: "The app’s request is not valid", text: "Nothing was granted.", detail: o.description}
}

// explainConnections explains an error of the connections page, which no app has opened.
func explainConnections(o outcome) explanation {
	if o.status >= http.StatusInternalServerError {
		return explanation{title: "This site cannot answer just now", text: "It is not certain that anything has ended.", advice: "Try again in a moment."}
	}
	return explanation{
		title: "This form is not valid", text: "Nothing has ended.", detail: o.description,
		advice: "Open the page of your connections on this site again and paste your token there.",
	}
}
