package oauth

import "time"

// Replacement is a host token that takes over the connections of another one of the same person.
type Replacement struct {
	Host     HostToken
	Verified map[Resource]Principal // the answers of the verifiers about Host
	Began    time.Time              // when the verifications began
	boxes    map[string][]byte      // Host sealed for a data key, by its public half
}

// NewReplacement returns a replacement that no verifier has answered.
func NewReplacement(host HostToken, now time.Time) Replacement {
	return Replacement{host, map[Resource]Principal{}, now, map[string][]byte{}}
}

// Replace gives the active authorizations another host token, and returns their number. It leaves
// out those of a resource without an answer. It refuses all with OtherHostToken when a verifier
// names another person, or permits none of the scopes of one.
func (a Authorizations) Replace(by Replacement, settings *Settings, now time.Time) (replaced int, err error) {
	keys, err := settings.Keys.Snapshot()
	if err != nil {
		return 0, err
	}
	settings = settings.withKeys(keys)
	for _, code := range a.Codes {
		if _, answered := by.Verified[code.resource]; !answered || !code.active(now) {
			continue
		}
		if err := by.applyTo(&code.consent, settings); err != nil {
			return 0, err
		}
		replaced++
	}
	for _, grant := range a.Grants {
		if _, answered := by.Verified[grant.resource]; !answered || !grant.active(now) {
			continue
		}
		if err := by.applyTo(&grant.consent, settings); err != nil {
			return 0, err
		}
		grant.verifiedAt = by.Began
		replaced++
	}
	return replaced, nil
}

func (r Replacement) applyTo(of *consent, settings *Settings) (err error) {
	principal := r.Verified[of.resource]
	if principal.Subject == "" { // the verifier names no subject, so the grant keeps its own
		principal.Subject = of.subject
	}
	if principal.Subject != of.subject || of.ReasonToEnd(principal, settings) != "" {
		return RefuseOtherHostToken()
	}
	of.scopes, of.roles, of.tokenID = of.scopesFor(principal, settings), principal.Roles, principal.TokenID
	if of.hostPrint, err = settings.Keys.Fingerprint(settings.Identity(r.Host)); err != nil {
		return err
	}
	of.host, err = of.host.replace(r, of.id, settings.Keys)
	return err
}

// RefuseOtherHostToken refuses a host token that may not replace another one.
func RefuseOtherHostToken(causes ...error) error {
	return Refuse(OtherHostToken, "J19", "the new token belongs to another person, or permits less", causes...)
}
