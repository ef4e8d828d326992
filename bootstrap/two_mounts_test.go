package bootstrap_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/oauth"
)

var _ = Describe("Two OAuth servers on one store", Label("D17", "N16"), func() {
	It("redeem and refresh nothing that the other has issued", func() {
		store := openStore()
		mine, theirs := openHost(oauth.Config{Issuer: "https://cms.example"}, store, nil), openHost(oauth.Config{Issuer: "https://cms.example/other"}, store, nil)
		code := mine.code()
		Expect(tokensOf(theirs.exchange(code)).Error).To(Equal("invalid_grant"))
		tokens := tokensOf(mine.exchange(code))
		Expect(tokensOf(theirs.refresh(tokens.Refresh)).Error).To(Equal("invalid_grant"))
		Expect(tokensOf(mine.refresh(tokens.Refresh)).Error).To(BeEmpty())
	})

	It("take no form that the other has shown, not even with the same issuer", Label("B4"), func() {
		store, issuer := openStore(), "https://cms.example"
		mine := openHost(oauth.Config{Issuer: issuer}, store, nil)
		theirs := openHost(oauth.Config{Issuer: issuer, Resource: issuer + "/other"}, store, nil)
		form := mine.ticket()
		Expect(theirs.approve(form)).To(And(HaveField("Code", http.StatusBadRequest), HaveField("Header()", Not(HaveKey("Location")))))
		Expect(mine.approve(form).Code).To(Equal(http.StatusSeeOther))
	})
})
