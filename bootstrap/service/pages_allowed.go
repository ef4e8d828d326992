package service

import (
	"errors"

	"github.com/pasteport/pasteport/domain/oauth"
)

// checkPages also refuses hosts that nothing compares: people would take them for the only ones.
func (c Config) checkPages() error {
	err := oauth.CheckPages(c.AllowedOrigins, c.AllowedHosts)
	if len(c.AllowedHosts) > 0 && !c.OnThisComputer() {
		err = errors.Join(err, oauth.NewMistake("%s is set, but a public server answers under every name: leave it out", oauth.Field("WithAllowedHosts")))
	}
	return err
}
