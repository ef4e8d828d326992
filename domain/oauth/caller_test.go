package oauth

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Describing the person behind a host token", Label("B10"), func() {
	DescribeTable("refuses what cannot be kept, or not kept apart", func(p Principal) { Expect(p.Check()).NotTo(Succeed()) },
		Entry("an empty role", Principal{Subject: "ada", Roles: []string{"editor", ""}}),
		Entry("a role with a line feed", Principal{Subject: "ada", Roles: []string{"a\nb"}}),
		Entry("a subject with NUL", Principal{Subject: "a\x00da"}),
		Entry("a subject that is no UTF-8", Principal{Subject: "a\xffda"}),
	)

	It("takes a name in any script, and none", func() {
		Expect(Principal{Subject: "山田 太郎", Roles: []string{"éditeur"}}.Check()).To(Succeed())
		Expect(Principal{}.Check()).To(Succeed())
	})
})
