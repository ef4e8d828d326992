package oauth

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pasteport/pasteport/domain/seal"
	"github.com/pasteport/pasteport/domain/uri"
)

const (
	consentPurpose = "ticket"
	returnPurpose  = "return"
	ticketIDBytes  = 16
	ticketIDClock  = 6 // how many of these bytes, at the beginning, are the time
)

// Ticket is the state of a consent page. The page contains it sealed, so that nothing is stored
// before the person approves.
type Ticket struct {
	id       string
	issuedAt time.Time
	request  *AuthorizationRequest
}

// NewTicket returns a ticket with a random id, which is also that of the code and the grant. The id
// begins with the time in milliseconds, so that new rows are adjacent in the index of a store.
func NewTicket(request *AuthorizationRequest, random io.Reader, now time.Time) (*Ticket, error) {
	var id [ticketIDBytes]byte
	binary.BigEndian.PutUint64(id[:], uint64(now.UnixMilli())<<(64-8*ticketIDClock))
	if _, err := io.ReadFull(random, id[ticketIDClock:]); err != nil {
		return nil, fmt.Errorf("generating a ticket id: %w", err)
	}
	return &Ticket{id: hex.EncodeToString(id[:]), issuedAt: now, request: request}, nil
}

const shortIDLength = 8

// ShortID returns the first random characters of the id of a ticket or grant, without the time
// before them, which is similar in recent ids.
func ShortID(id string) string {
	if clock := 2 * ticketIDClock; len(id) >= clock+shortIDLength {
		id = id[clock:]
	}
	return id[:min(len(id), shortIDLength)]
}

// MatchesID reports whether the typed text is a prefix of the id or, like a ShortID, of its random
// part.
func MatchesID(typed, id string) bool {
	clock := min(2*ticketIDClock, len(id))
	return strings.HasPrefix(id, typed) || strings.HasPrefix(id[clock:], typed)
}

// ID returns the ticket's id, which is not a secret.
func (t *Ticket) ID() string { return t.id }

// Request returns the request that the page showed.
func (t *Ticket) Request() *AuthorizationRequest { return t.request }

// Seal returns the ticket as an opaque form value that only a server with the same secret and
// issuer can open.
func (t *Ticket) Seal() (string, error) {
	r := t.request
	checkedAt := ""
	if !r.Client.CheckedAt.IsZero() {
		checkedAt = formatMillis(r.Client.CheckedAt)
	}
	return sealValues(r.settings, consentPurpose, t.issuedAt, "id", t.id, "client_id", r.Client.ID.raw,
		"client_name", r.Client.Name, "named", strconv.FormatBool(r.Client.DeclaresID), "checked_at", checkedAt,
		"auth_method", string(r.Client.AuthMethod), "redirect_uri", r.RedirectURI.raw, "state", r.state,
		"scope", r.Scopes.String(), "resource", r.Resource.canonical, "code_challenge", r.challenge.encoded)
}

// Code derives the authorization code for an approval of the ticket. Two submissions of the form
// with the same token and choice have the same code. It cannot be predicted without the server
// secret and the host token.
func (t *Ticket) Code(host HostToken, by *Choice, keys seal.KeyRing) (Secret, error) {
	tags, err := keys.Tags("code", t.id, "\x00", host.Reveal(), by.text())
	if err != nil {
		return Secret{}, fmt.Errorf("deriving a code: %w", err)
	}
	return NewSecret(CodeSecret, t.id, 0, Entropy(tags[0]), keys)
}

// TicketTTL is how long a page can be answered.
const TicketTTL = 10 * time.Minute

// OpenTicket opens what Ticket.Seal has sealed. It refuses with InvalidTicket what this issuer has
// not sealed for one of its resources, and with ExpiredTicket what is older than TicketTTL.
func OpenTicket(sealed string, settings *Settings, now time.Time) (*Ticket, error) {
	values, issuedAt, err := openValues(settings, consentPurpose, sealed)
	if err != nil {
		return nil, err
	}
	resource := NewResource(values.Get("resource"))
	if !settings.protects(resource) {
		return nil, Refuse(InvalidTicket, "B4", "the form was made for a resource that is not protected here")
	}
	if expired(issuedAt.Add(TicketTTL), now) {
		return nil, Refuse(ExpiredTicket, "B4", "the form is too old")
	}
	checkedAt, err := parseMillis(values.Get("checked_at"))
	if err != nil {
		return nil, err
	}
	return &Ticket{id: values.Get("id"), issuedAt: issuedAt, request: &AuthorizationRequest{
		Client: Client{
			ID:         RestoreClientID(values.Get("client_id")),
			Name:       values.Get("client_name"),
			AuthMethod: AuthMethod(values.Get("auth_method")),
			DeclaresID: values.Get("named") == "true",
			CheckedAt:  checkedAt,
		},
		RedirectURI: RedirectURI{values.Get("redirect_uri")},
		Resource:    resource,
		Scopes:      restoreScopes(values.Get("scope")),
		state:       values.Get("state"),
		challenge:   codeChallenge{values.Get("code_challenge")},
		settings:    settings,
	}}, nil
}

// SealReturn seals an error redirect for a page on which the person has to click "return".
func SealReturn(redirect Redirect, settings *Settings, now time.Time) (string, error) {
	return sealValues(settings, returnPurpose, now, "location", redirect.Location, "host", redirect.Host)
}

// OpenReturn opens a redirect of SealReturn. It refuses like OpenTicket.
func OpenReturn(sealed string, settings *Settings, now time.Time) (Redirect, error) {
	values, issuedAt, err := openValues(settings, returnPurpose, sealed)
	if err != nil {
		return Redirect{}, err
	}
	if expired(issuedAt.Add(TicketTTL), now) {
		return Redirect{}, Refuse(ExpiredTicket, "B17", "the form is too old")
	}
	return Redirect{Location: values.Get("location"), Host: values.Get("host"), Automatic: true}, nil
}

// sealValues seals a time and pairs of a name and a value.
func sealValues(settings *Settings, purpose string, at time.Time, pairs ...string) (string, error) {
	sealers, err := settings.Keys.Sealers(seal.Binding{Kind: purpose, Owner: settings.Issuer})
	if err != nil {
		return "", err
	}
	pairs = append(pairs, "at", formatMillis(at))
	return base64.RawURLEncoding.EncodeToString(sealers.Seal(seal.PackTexts(pairs...))), nil
}

func openValues(settings *Settings, purpose, sealed string) (url.Values, time.Time, error) {
	sealers, err := settings.Keys.Sealers(seal.Binding{Kind: purpose, Owner: settings.Issuer})
	if err != nil {
		return nil, time.Time{}, err
	}
	return openValuesWith(sealers, sealed)
}

func openValuesWith(sealers seal.Sealers, sealed string) (url.Values, time.Time, error) {
	refusal := Refuse(InvalidTicket, "B4", "the form was not made by this server")
	box, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil || !uri.Printable(sealed) { // the decoder skips line breaks, even when strict
		return nil, time.Time{}, refusal
	}
	plain, err := sealers.Open(box)
	if err != nil {
		return nil, time.Time{}, refusal
	}
	texts, err := seal.UnpackTexts(plain)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("reading an opened ticket: %w", err)
	}
	values := url.Values{}
	for pair := range slices.Chunk(texts, 2) {
		values.Set(pair[0], pair[len(pair)-1]) // does not panic for a last name without a value
	}
	at, err := parseMillis(values.Get("at"))
	return values, at, err
}

func formatMillis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// parseMillis returns the zero time for "".
func parseMillis(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	millis, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading an opened ticket: %w", err)
	}
	return time.UnixMilli(millis).UTC(), nil
}

// expired reports whether now is end or later: the exact instant counts as expired, everywhere.
func expired(end, now time.Time) bool { return !now.Before(end) }
