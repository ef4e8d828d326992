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
		for _, wanted := range []*oauth.AuthorizationCode{w.fullCode("full", 1), minimalCode("bare", secret(oauth.CodeSecret))} {
			Expect(w.store.AddCode(ctx, wanted, noEarlierCode)).To(Succeed())
			found, err := w.store.Code(ctx, oauth.Digest(wanted.Snapshot().Digest))
			Expect(err).NotTo(HaveOccurred())
			Expect(found.Snapshot()).To(Equal(wanted.Snapshot()))
		}
	})

	It("stores every field of a code that replaces another or is redeemed", func(ctx SpecContext) {
		Expect(w.store.AddCode(ctx, w.fullCode("full", 1), noEarlierCode)).To(Succeed())
		value := secret(oauth.CodeSecret)
		Expect(w.store.AddCode(ctx, minimalCode("full", value), replace)).To(Succeed())
		Expect(w.code(ctx, value)).To(Equal(minimalCode("full", value).Snapshot()))
		wanted := w.fullCode("full", 2)
		Expect(w.store.RedeemCode(ctx, value.Digest(), func(c *oauth.AuthorizationCode) (*oauth.AccessGrant, error) {
			*c = *wanted
			return minimalGrant("full", secret(oauth.AccessTokenSecret)), nil
		})).To(Succeed())
		found, err := w.store.Code(ctx, oauth.Digest(wanted.Snapshot().Digest))
		Expect(err).NotTo(HaveOccurred())
		Expect(found.Snapshot()).To(Equal(wanted.Snapshot()))
	})

	It("stores every field of a new grant", func(ctx SpecContext) {
		token, other := secret(oauth.AccessTokenSecret), secret(oauth.AccessTokenSecret)
		for token, wanted := range map[oauth.Secret]*oauth.AccessGrant{token: w.fullGrant("full", token, 1), other: minimalGrant("bare", other)} {
			Expect(w.addGrant(ctx, wanted)).To(Succeed())
			found, err := w.store.Grant(ctx, token.Digest())
			Expect(err).NotTo(HaveOccurred())
			expectSame(found, wanted)
		}
	})

	It("stores every field of a changed grant", func(ctx SpecContext) {
		token := secret(oauth.AccessTokenSecret)
		Expect(w.addGrant(ctx, w.fullGrant("full", token, 1))).To(Succeed())
		bare := minimalGrant("full", token)
		for _, wanted := range []*oauth.AccessGrant{w.fullGrant("full", token, 2), bare, w.fullGrant("full", token, 3)} {
			Expect(w.store.UpdateGrant(ctx, token.Digest(), func(g *oauth.AccessGrant) error {
				*g = *wanted
				return nil
			})).To(Succeed())
			found, err := w.store.Grant(ctx, token.Digest())
			Expect(err).NotTo(HaveOccurred())
			expectSame(found, wanted)
		}
	})

	It("stores times in UTC to the millisecond", Label("H4"), func(ctx SpecContext) {
		value, tokens := w.active(ctx)
		Expect(w.code(ctx, value)).To(And(HaveField("CreatedAt", w.now), HaveField("ForgetAfter", w.now.Add(24*time.Hour)), HaveField("WithdrawnAt", time.Time{})))
		grant := w.grant(ctx, tokens.Access)
		Expect(grant.CreatedAt).To(Equal(w.now))
		Expect(grant.GraceEnd.IsZero()).To(BeTrue())
		Expect(w.secretSnapshot(ctx, tokens.Access).ForgetAfter).To(Equal(w.now.Add(time.Hour)))
	})
}

func reopening(w *world, reopen func(oauth.Store) oauth.Store) {
	It("keeps codes, grants and used assertions when it is reopened", Label("I19"), func(ctx SpecContext) {
		code, tokens := w.active(ctx)
		before, codeBefore := w.grant(ctx, tokens.Access), w.code(ctx, code)
		Expect(w.store.UseOnce(ctx, oauth.Digest{1}, w.now)).To(Succeed())
		w.store = reopen(w.store)
		Expect(w.store.UseOnce(ctx, oauth.Digest{1}, w.now)).To(MatchError(oauth.ErrDuplicate))
		Expect(w.grant(ctx, tokens.Access)).To(Equal(before))
		Expect(w.code(ctx, code)).To(Equal(codeBefore))
		_, err := w.redeem(ctx, code, func() {})
		Expect(err).To(MatchError(oauth.ErrRetried))
		_, err = w.refresh(ctx, tokens.Refresh, func() {})
		Expect(err).NotTo(HaveOccurred())
	})
}

// fullGrant builds a grant with a value in every field, also in fields that are added later; each round has other values.
func (w *world) fullGrant(id string, token oauth.Secret, round int) *oauth.AccessGrant {
	var grant oauth.GrantSnapshot
	var held oauth.SecretSnapshot
	fill(reflect.ValueOf(&grant).Elem(), w.now, round)
	fill(reflect.ValueOf(&held).Elem(), w.now, round)
	digest := token.Digest()
	grant.ID, held.Grant, held.Digest = id, id, digest[:]
	full := oauth.RestoreGrant(grant, held)
	restored, secrets := full.Snapshot()
	expectNoZero(restored)
	expectNoZero(secrets[0])
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

func expectSame(found, wanted *oauth.AccessGrant) {
	GinkgoHelper()
	grant, secrets := found.Snapshot()
	wantedGrant, wantedSecrets := wanted.Snapshot()
	Expect(grant).To(Equal(wantedGrant))
	Expect(secrets).To(Equal(wantedSecrets))
}

func fill(record reflect.Value, now time.Time, round int) {
	for i := range record.NumField() {
		field, number := record.Field(i), 100*round+i
		switch field.Interface().(type) {
		case string:
			field.SetString(record.Type().Field(i).Name + string(rune('a'+round)))
		case int:
			field.SetInt(int64(number))
		case time.Time:
			field.Set(reflect.ValueOf(now.Add(time.Duration(number) * 1001 * time.Millisecond)))
		case []byte:
			field.SetBytes(bytesOf(byte(number)))
		default:
			Fail("storespec cannot fill a field of type " + field.Type().String())
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
		Expect(fields.Field(i).IsZero()).To(BeFalse(), fields.Type().Field(i).Name+" is not restored")
	}
}
