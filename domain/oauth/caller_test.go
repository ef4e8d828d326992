package oauth

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/credential"
)

var _ = Describe("Describing the person behind a host token", Label("B10"), func() {
	DescribeTable("refuses what cannot be kept, or not kept apart", func(p Principal) {
		Expect(p.Check()).NotTo(Succeed())
	},
		Entry("an empty role", Principal{Subject: "ada", Roles: []string{"editor", ""}}),
		Entry("a role with a line feed", Principal{Subject: "ada", Roles: []string{"a\nb"}}),
		Entry("a subject with NUL", Principal{Subject: "a\x00da"}),
		Entry("a subject that is not UTF-8", Principal{Subject: "a\xffda"}),
		Entry("a token id with NUL", Principal{TokenID: "4\x007"}),
	)

	It("reveals a token or a secret field in a name, and no other field", Label("B15"), func() {
		fields := credential.Fields{{Name: "user"}, {Name: "key", Secret: true}}
		host, err := ParseHostFields(fields, func(name string) string {
			return map[string]string{"user": "ada@cms.example", "key": "secret-key"}[name]
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(Principal{Subject: "ada@cms.example"}.Reveals(host, fields)).To(BeFalse())
		Expect(Principal{Roles: []string{"has secret-key"}}.Reveals(host, fields)).To(BeTrue())
		token, err := ParseHostToken("secret-token")
		Expect(err).NotTo(HaveOccurred())
		Expect(Principal{Subject: "secret-token"}.Reveals(token, nil)).To(BeTrue())
		Expect(Principal{TokenID: "secret-token"}.Reveals(token, nil)).To(BeTrue())
	})

	It("takes a name in any script, and none", func() {
		Expect(Principal{Subject: "山田 太郎", Roles: []string{"éditeur"}}.Check()).To(Succeed())
		Expect(Principal{}.Check()).To(Succeed())
	})
})

var _ = Describe("The owner of sessions", Label("G14"), func() {
	caller := Caller{Grant: "A", Client: RestoreClientID("https://client.example/a.json"), Subject: "ada"}
	at := NewResource("https://cms.example/mcp")

	It("is the same for every grant of one subject in one client", func() {
		later := caller
		later.Grant, later.Scopes = "B", NewScopes("mcp")
		Expect(later.SessionOwner(at)).To(Equal(caller.SessionOwner(at)))
	})

	It("differs by client, subject and resource", func() {
		otherClient, otherSubject, joined := caller, caller, caller
		otherClient.Client = RestoreClientID("https://client.example/b.json")
		otherSubject.Subject = "grace"
		joined.Client, joined.Subject = RestoreClientID("https://client.example/a.jso"), "nada"
		owners := map[string]bool{caller.SessionOwner(NewResource("https://cms.example/more")): true}
		for _, one := range []Caller{caller, otherClient, otherSubject, joined} {
			owners[one.SessionOwner(at)] = true
		}
		Expect(owners).To(HaveLen(5))
	})
})
