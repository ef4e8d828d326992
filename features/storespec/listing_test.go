package storespec

import (
	"context"
	"iter"

	"github.com/pasteport/pasteport/domain/oauth"
)

// Authorizations lists in any order. With a flaw it leaves out issued codes, or holds its lock
// while it yields.
func (f *flawed) Authorizations(context.Context) iter.Seq2[oauth.Authorization, error] {
	return func(yield func(oauth.Authorization, error) bool) {
		var all []oauth.Authorization
		f.mutex.Lock()
		for _, code := range f.kept.codes {
			if code.State == oauth.IssuedCode && !f.listsNoCodes {
				all = append(all, oauth.RestoreCode(code))
			}
		}
		for _, grant := range f.kept.grants {
			all = append(all, oauth.RestoreGrant(grant))
		}
		if f.listsLocked {
			defer f.mutex.Unlock()
		} else {
			f.mutex.Unlock()
		}
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}

// listingFlaws break the contract of oauth.AuthorizationLister.
var listingFlaws = map[string]func(f *flawed){
	"lists no issued codes":         func(f *flawed) { f.listsNoCodes = true },
	"lists while it holds its lock": func(f *flawed) { f.listsLocked = true },
}
