package seal_test

import (
	"bytes"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/seal"
)

var _ = Describe("Binding a session to its owner", Label("U12"), func() {
	first, second := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	keys := seal.NewKeyRing(seal.FixedSecrets{first})

	It("opens what it has bound, however the upstream calls it", func() {
		for _, session := range []string{"a", "a.b.c", "", strings.Repeat("x", 500)} {
			bound, err := keys.BindSession(session, "owner")
			Expect(err).NotTo(HaveOccurred())
			opened, ok, err := keys.OpenSession(bound, "owner")
			Expect(err).NotTo(HaveOccurred())
			Expect(ok).To(BeTrue())
			Expect(opened).To(Equal(session))
		}
	})

	It("opens it also after the server secret was replaced, until that is forgotten", func() {
		bound, err := keys.BindSession("a", "owner")
		Expect(err).NotTo(HaveOccurred())
		_, ok, err := seal.NewKeyRing(seal.FixedSecrets{second, first}).OpenSession(bound, "owner")
		Expect(ok, err).To(BeTrue())
		_, ok, err = seal.NewKeyRing(seal.FixedSecrets{second}).OpenSession(bound, "owner")
		Expect(ok, err).To(BeFalse())
	})

	DescribeTable("opens nothing else:", func(spoil func(string) string, grant string) {
		bound, err := keys.BindSession("session", "owner")
		Expect(err).NotTo(HaveOccurred())
		opened, ok, err := keys.OpenSession(spoil(bound), grant)
		Expect(err).NotTo(HaveOccurred())
		Expect(ok).To(BeFalse())
		Expect(opened).To(BeEmpty())
	},
		Entry("another grant's", func(s string) string { return s }, "other"),
		Entry("another session", func(s string) string { return "x" + s }, "owner"),
		Entry("a longer tag", func(s string) string { return s + "A" }, "owner"),
		Entry("a shorter tag", func(s string) string { return s[:len(s)-1] }, "owner"),
		Entry("no tag", func(string) string { return "session" }, "owner"),
		Entry("an empty tag", func(string) string { return "session." }, "owner"),
		Entry("nothing", func(string) string { return "" }, "owner"),
		Entry("what is between two sessions", func(s string) string {
			return strings.Replace(s, "session", "sess", 1)
		}, "owner"),
	)
})
