package http

import (
	"net/http"

	"github.com/pasteport/pasteport/domain/oauth"
)

type explanation struct{ title, text, advice string }

// explanations say to a person what happened and what to do; they never repeat input (A40).
var explanations = map[oauth.Kind]explanation{
	oauth.MalformedClientID:     {"This app cannot be identified", "The address that it gives as its identity is not one that this site can look up.", tellMaker},
	oauth.ClientUnreachable:     {"This app cannot be looked up", "Its published description could not be fetched.", "Try again in a moment. If it stays like this, tell the maker of the app."},
	oauth.InvalidClientDocument: {"This app is not described correctly", "What the app publishes about itself is not valid, so nobody can tell who is asking.", tellMaker},
	oauth.UnsupportedClient:     {"This app needs something that this site does not offer", "Its published description asks for a way to sign in that is not available here.", tellMaker},
	oauth.ClientNotAllowed:      {"This app is not allowed here", "The operator of this site does not let this app connect.", ""},
	oauth.ClientBusy:            {"Too many requests just now", "Other apps are being looked up.", "Wait a moment and start again in your app."},
	oauth.UnregisteredRedirect:  {"This app asks to be answered at an address that it does not list", "To protect you, nothing was sent there.", tellMaker},
	oauth.InvalidTicket:         {"This form is not valid", "Nothing was granted.", startAgain},
	oauth.ExpiredTicket:         {"This form is too old", "Nothing was granted.", startAgain},
	oauth.UsedTicket:            {"This form has been used already", "Each form can be answered once.", "If your app is not connected, start again there."},
}

const (
	tellMaker  = "Tell the maker of the app; nothing can be done here."
	startAgain = "Start again in your app."
)

func explain(err error, o outcome) explanation {
	kind, refused := oauth.KindOf(err)
	if known, found := explanations[kind]; found {
		return known
	}
	if !refused || o.status >= http.StatusInternalServerError {
		return explanation{"This site cannot answer just now", "Nothing was granted.", "Try again in a moment."}
	}
	return explanation{"The app's request is not valid", "Nothing was granted: " + o.description + ".", ""}
}
