package storespec

import (
	"reflect"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

func persistence(w *world) {
	It("stores every field of a new code", func(ctx SpecContext) {
		for _, wanted := range []*oauth.AuthorizationCode{w.fullCode("full", 1), minimalCode("bare")} {
			Expect(w.store.AddCode(ctx, wanted, noEarlierCode)).To(Succeed())
			found, err := w.store.Code(ctx, wanted.ID())
			Expect(err).NotTo(HaveOccurred())
			Expect(withoutVersion(found)).To(Equal(withoutVersion(wanted)))
		}
	})

	It("stores every field of a code that replaces another or is redeemed", func(ctx SpecContext) {
		Expect(w.store.AddCode(ctx, w.fullCode("full", 1), noEarlierCode)).To(Succeed())
		stored := func() oauth.CodeSnapshot {
			GinkgoHelper()
			found, err := w.store.Code(ctx, "full")
			Expect(err).NotTo(HaveOccurred())
			return withoutVersion(found)
		}
		Expect(w.store.AddCode(ctx, minimalCode("full"), replace)).To(Succeed())
		Expect(stored()).To(Equal(withoutVersion(minimalCode("full"))))
		wanted := w.fullCode("full", 2)
		redeem := func(c *oauth.AuthorizationCode) (*oauth.AccessGrant, error) {
			*c = *wanted
			return minimalGrant("full"), nil
		}
		Expect(w.store.RedeemCode(ctx, "full", redeem)).To(Succeed())
		Expect(stored()).To(Equal(withoutVersion(wanted)))
	})

	It("stores every field of a new grant", func(ctx SpecContext) {
		for _, wanted := range []*oauth.AccessGrant{w.fullGrant("full", 1), minimalGrant("bare")} {
			Expect(w.addGrant(ctx, wanted)).To(Succeed())
			found, err := w.store.Grant(ctx, wanted.ID())
			Expect(err).NotTo(HaveOccurred())
			Expect(grantWithoutVersion(found)).To(Equal(grantWithoutVersion(wanted)))
		}
	})

	It("stores every field of a changed grant", func(ctx SpecContext) {
		first := w.fullGrant("full", 1)
		Expect(w.addGrant(ctx, first)).To(Succeed())
		for _, wanted := range []*oauth.AccessGrant{w.fullGrant("full", 2), minimalGrant("full"),
			w.fullGrant("full", 3)} {
			Expect(w.store.UpdateGrant(ctx, "full", func(g *oauth.AccessGrant) error {
				*g = *wanted
				return nil
			})).To(Succeed())
			found, err := w.store.Grant(ctx, "full")
			Expect(err).NotTo(HaveOccurred())
			changed, used := grantWithoutVersion(wanted), first.Snapshot()
			if _, records := w.store.Store.(oauth.UseRecorder); records {
				changed.LastUsedAt, changed.LastUsedToken = used.LastUsedAt, used.LastUsedToken
			}
			Expect(grantWithoutVersion(found)).To(Equal(changed))
		}
	})

	It("stores times in UTC to the millisecond", Label("H4"), func(ctx SpecContext) {
		value, tokens := w.active(ctx)
		Expect(w.code(ctx, value)).To(And(
			HaveField("CreatedAt", w.now), HaveField("ForgetAfter", w.now.Add(24*time.Hour)),
			HaveField("WithdrawnAt", time.Time{})))
		grant := w.grant(ctx, tokens.Access)
		Expect(grant.CreatedAt).To(Equal(w.now))
		Expect(grant.EndedAt.IsZero()).To(BeTrue())
		Expect(grant.AccessTokens).To(HaveExactElements(HaveField("ExpiresAt", w.now.Add(time.Hour))))
	})
}

func reopening(w *world, reopen func(oauth.Store) oauth.Store) {
	It("keeps codes, grants and used assertions when it is reopened", Label("I19"), func(ctx SpecContext) {
		code, tokens := w.active(ctx)
		before, codeBefore := w.grant(ctx, tokens.Access), w.code(ctx, code)
		Expect(w.store.UseOnce(ctx, oauth.Digest{1}, w.now)).To(Succeed())
		w.store = On(reopen(w.store.Store))
		Expect(w.store.UseOnce(ctx, oauth.Digest{1}, w.now)).To(MatchError(oauth.ErrDuplicate))
		Expect(w.grant(ctx, tokens.Access)).To(Equal(before))
		Expect(w.code(ctx, code)).To(Equal(codeBefore))
		_, err := w.redeem(ctx, code, func() {})
		Expect(err).To(MatchError(oauth.ErrRetried))
		_, err = w.refresh(ctx, tokens.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
	})
}

// withoutVersion is a snapshot without what a store may count.
func withoutVersion(code *oauth.AuthorizationCode) oauth.CodeSnapshot {
	snapshot := code.Snapshot()
	snapshot.Version = 0
	return snapshot
}

func grantWithoutVersion(grant *oauth.AccessGrant) oauth.GrantSnapshot {
	snapshot := grant.Snapshot()
	snapshot.Version = 0
	return snapshot
}

// fullGrant builds a grant with a value in every field, also in fields that are added later; each
// round has other values.
func (w *world) fullGrant(id string, round int) *oauth.AccessGrant {
	var grant oauth.GrantSnapshot
	fill(reflect.ValueOf(&grant).Elem(), w.now, round)
	grant.ID, grant.State = id, "active"
	full := oauth.RestoreGrant(grant)
	expectNoZero(full.Snapshot())
	return full
}

// fullCode builds a code with a value in every field; each round has other values.
func (w *world) fullCode(id string, round int) *oauth.AuthorizationCode {
	var code oauth.CodeSnapshot
	fill(reflect.ValueOf(&code).Elem(), w.now, round)
	code.ID = id
	full := oauth.RestoreCode(code)
	expectNoZero(full.Snapshot())
	return full
}

func fill(record reflect.Value, now time.Time, round int) {
	for i := range record.NumField() {
		field, number := record.Field(i), 100*round+i
		switch field.Interface().(type) {
		case string:
			field.SetString(record.Type().Field(i).Name + string(rune('a'+round)))
		case int64: // the version, which the store counts
		case uint32:
			field.SetUint(uint64(number))
		case time.Time:
			field.Set(reflect.ValueOf(now.Add(time.Duration(number) * 1001 * time.Millisecond)))
		case []byte:
			field.SetBytes(bytesOf(byte(number)))
		case oauth.Digest:
			field.Set(reflect.ValueOf(oauth.Digest(bytesOf(byte(number)))))
		case oauth.ConsentSnapshot:
			fill(field, now, round)
		default:
			if field.Kind() != reflect.Slice {
				Fail("storespec cannot fill a field of type " + field.Type().String())
			}
			field.Set(reflect.MakeSlice(field.Type(), 2, 2))
			fill(field.Index(0), now, round)
			fill(field.Index(1), now, round+3)
		}
	}
}

func bytesOf(value byte) []byte {
	filled := make([]byte, len(oauth.Digest{}))
	for i := range filled {
		filled[i] = value + byte(i)
	}
	return filled
}

func expectNoZero(record any) {
	fields := reflect.ValueOf(record)
	for i := range fields.NumField() {
		field := fields.Field(i)
		Expect(field.IsZero() && field.Kind() != reflect.Int64).
			To(BeFalse(), fields.Type().Field(i).Name+" is not restored")
		if field.Kind() == reflect.Slice && field.Type().Elem().Kind() == reflect.Struct {
			expectNoZero(field.Index(0).Interface())
		}
	}
}
