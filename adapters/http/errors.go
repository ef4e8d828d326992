package http

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/pasteport/pasteport/domain/oauth"
	"github.com/pasteport/pasteport/domain/recovered"
)

// endpoint answers a request or returns an error, which an errorWriter answers.
type (
	endpoint    func(echo.Context) error
	errorWriter func(echo.Context, error) error
)

// statusError overrides the status of a refusal.
type statusError struct {
	status  int
	refusal error
}

func (e *statusError) Error() string { return e.refusal.Error() }
func (e *statusError) Unwrap() error { return e.refusal }

func refuseWith(status int, rule, description string) error {
	return &statusError{status, oauth.Refuse(oauth.InvalidRequest, rule, description)}
}

// dispatch calls the endpoint of the method. It passes every error, even a panic, to the error
// writer, unless the response has begun.
func (e *Endpoints) dispatch(serve map[string]endpoint, allow string, fail errorWriter) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			if value := recover(); value != nil {
				err = fmt.Errorf("answering %s: %w", c.Path(), recovered.New(value))
				if c.Response().Committed {
					e.logger.ErrorContext(c.Request().Context(), "a response broke off", "error", err)
					panic(http.ErrAbortHandler) // so that the client does not take a part for the whole
				}
				err = fail(c, err)
			}
		}()
		if c.Request().Body != http.NoBody {
			readUntil(c, time.Now().Add(formTimeout))
		}
		handle, found := serve[c.Request().Method]
		if !found {
			c.Response().Header().Set(echo.HeaderAllow, allow)
			return fail(c, refuseWith(http.StatusMethodNotAllowed, "A1, D1",
				"this endpoint does not support the method"))
		}
		err = handle(c)
		switch {
		case err == nil:
			return nil
		case c.Response().Committed:
			e.logger.InfoContext(c.Request().Context(), "the client closed the connection during the response",
				"endpoint", c.Path(), "error", err)
			return nil
		}
		return fail(c, err)
	}
}

// outcome is the response to an error.
type outcome struct {
	status      int
	code        string
	description string
	retryAfter  string
	incident    string // the id of the request in the log, the trace and the error page
}

var statuses = map[oauth.Kind]int{
	oauth.InvalidClient:          http.StatusUnauthorized,
	oauth.ClientUnreachable:      http.StatusBadGateway,
	oauth.ClientNotAllowed:       http.StatusForbidden,
	oauth.WrongHostToken:         http.StatusForbidden,
	oauth.OtherHostToken:         http.StatusForbidden,
	oauth.TooManyGuesses:         http.StatusTooManyRequests,
	oauth.TooManyFailures:        http.StatusTooManyRequests,
	oauth.TooManyRegistrations:   http.StatusTooManyRequests,
	oauth.ClientBusy:             http.StatusServiceUnavailable,
	oauth.HostTokenNotVerifiable: http.StatusServiceUnavailable,
	oauth.MisconfiguredVerifier:  http.StatusServiceUnavailable,
	oauth.TemporarilyUnavailable: http.StatusServiceUnavailable,
}

// answerError logs an error once, with its incident id, sets Retry-After if the wait is known, and
// returns the response to the error.
func (e *Endpoints) answerError(c echo.Context, err error) outcome {
	o := outcomeOf(err)
	o.incident = cmp.Or(RequestID(c.Request().Context()), newRequestID())
	log := e.logger.InfoContext
	if o.status >= http.StatusInternalServerError {
		log = e.logger.ErrorContext
	}
	log(c.Request().Context(), "refused", "endpoint", c.Path(), "status", o.status, "rule", oauth.RefusalOf(err).Rule,
		"error", err, "incident", o.incident)
	if o.retryAfter != "" {
		c.Response().Header().Set(echo.HeaderRetryAfter, o.retryAfter)
	}
	return o
}

// outcomeOf maps an error to a response, which contains the text of a refusal, and a fixed text for
// any other error.
func outcomeOf(err error) (o outcome) {
	var refusal *oauth.Error
	switch {
	case errors.As(err, &refusal):
		o.status, o.code, o.description = statuses[refusal.Kind], refusal.Kind.Code(), refusal.Description
	case errors.Is(err, oauth.ErrUnavailable), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, context.Canceled):
		o.status, o.code, o.description = http.StatusServiceUnavailable, oauth.TemporarilyUnavailable.Code(),
			"The service cannot answer just now"
	default:
		o.status, o.code, o.description = http.StatusInternalServerError, "server_error", "Something went wrong here"
	}
	if withStatus, overrides := errors.AsType[*statusError](err); overrides {
		o.status = withStatus.status
	}
	if o.status == 0 {
		o.status = http.StatusBadRequest
	}
	o.retryAfter = retryAfter(o.status, refusal)
	return o
}

// retryAfter returns whole seconds, rounded up, or "".
func retryAfter(status int, refusal *oauth.Error) string {
	switch {
	case refusal != nil && refusal.RetryAfter > 0:
		return strconv.Itoa(int((refusal.RetryAfter + time.Second - 1) / time.Second))
	case status == http.StatusServiceUnavailable:
		return "1"
	}
	return ""
}

// failInJSON answers a client (RFC 6749 §5.2).
func (e *Endpoints) failInJSON(c echo.Context, err error) error {
	o := e.answerError(c, err)
	if o.status == http.StatusUnauthorized {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, `Basic realm="oauth"`)
	}
	return writeJSON(c, o.status, struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}{o.code, o.description})
}

// writeJSON answers a client with application/json, uncached and readable from every origin.
func writeJSON(c echo.Context, status int, body any) error {
	noStore(c)
	c.Response().Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	c.Response().WriteHeader(status)
	return c.Echo().JSONSerializer.Serialize(c, body, "")
}

// noStore sets the headers of every response to a client.
func noStore(c echo.Context) {
	header := c.Response().Header()
	header.Set(echo.HeaderCacheControl, "no-store")
	header.Set("Pragma", "no-cache")
	header.Set(echo.HeaderAccessControlAllowOrigin, "*")
}

type explanation struct{ title, text, advice, detail string }

// explanations tell a person what happened and what to do. They contain no input of the request.
var explanations = map[oauth.Kind]explanation{
	oauth.MalformedClientID: {
		title:  "This app cannot be identified",
		text:   "It does not give an address at which this site can read who it is.",
		advice: addAgain,
	},
	oauth.ClientUnreachable: {
		title:  "This app cannot be looked up",
		text:   "The app’s published description could not be fetched.",
		advice: "Try again in a moment. If this lasts, tell the people who run this site.",
	},
	oauth.InvalidClientDocument: {
		title:  "This app is not described correctly",
		text:   "The description that the app publishes is not valid, so this site cannot identify the app.",
		advice: tellMaker,
	},
	oauth.UnsupportedClient: {
		title:  "This app needs something that this site does not offer",
		text:   "The app’s published description asks for a way to sign in that is not available here.",
		advice: tellMaker,
	},
	oauth.ClientNotAllowed: {
		title:  "This app is not allowed here",
		text:   "The operator of this site does not let this app connect.",
		advice: "If you need this app, ask the people who run this site to allow it.",
	},
	oauth.ClientBusy: {
		title:  "Too many requests just now",
		text:   "Other apps are being looked up.",
		advice: "Wait a moment and start again in your app.",
	},
	oauth.UnregisteredRedirect: {
		title:  "This app requests a redirect to an address that it does not list",
		text:   "To protect you, nothing was sent there.",
		advice: tellMaker,
	},
	oauth.StateTooLong: {
		title:  tooMuchState,
		text:   "It sends a “state” of more than 4096 characters. Nothing was granted.",
		advice: tellMaker,
	},
	oauth.StateNotPrintable: {
		title:  tooMuchState,
		text:   "It sends a “state” with characters that are not printable ASCII. Nothing was granted.",
		advice: tellMaker,
	},
	oauth.LostRegistration: {
		title:  "This app has to register again",
		text:   "Its registration is not valid here, or not any more. Nothing was granted.",
		advice: addAgain,
	},
	oauth.InvalidTicket: {title: "This form is not valid", text: "Nothing was granted.", advice: startAgain},
	oauth.ExpiredTicket: {title: "This form is too old", text: "Nothing was granted.", advice: startAgain},
	oauth.UsedTicket: {
		title:  "This form has been used already",
		text:   "Each form can be answered once.",
		advice: "If your app is not connected, start again there.",
	},
}

const (
	tellMaker    = "Tell the maker of the app; nothing can be done here."
	addAgain     = "Remove this server in your app, add it again and connect."
	tooMuchState = "This app sends a value that this site cannot return"
	startAgain   = "Start again in your app."
)

func explain(err error, o outcome) explanation {
	kind, refused := oauth.KindOf(err)
	if known, found := explanations[kind]; found {
		if kind == oauth.MalformedClientID { // the developer of the client needs the requirement, which is a fixed text
			known.detail = o.description
		}
		return known
	}
	if !refused || o.status >= http.StatusInternalServerError {
		return explanation{
			title:  "This site cannot answer just now",
			text:   "Nothing was granted.",
			advice: "Try again in a moment.",
		}
	}
	return explanation{title: "The app’s request is not valid", text: "Nothing was granted.", detail: o.description}
}

// explainConnections explains an error of the connections page, which no app has opened.
func explainConnections(o outcome) explanation {
	if o.status >= http.StatusInternalServerError {
		return explanation{
			title:  "This site cannot answer just now",
			text:   "It is not certain that anything has ended.",
			advice: "Try again in a moment.",
		}
	}
	return explanation{
		title:  "This form is not valid",
		text:   "Nothing has ended.",
		detail: o.description,
		advice: "Open the page of your connections on this site again and paste your token there.",
	}
}
