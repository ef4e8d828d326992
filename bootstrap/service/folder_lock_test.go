package service

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Locking the data folder", func() {
	const issuer, other = "https://one.example", "https://other.example"

	It("refuses a service with another issuer while one runs", func() {
		dir := GinkgoT().TempDir()
		first, err := lockFolder(dir, issuer)
		Expect(err).NotTo(HaveOccurred())
		second, err := lockFolder(dir, issuer)
		Expect(err).NotTo(HaveOccurred())
		Expect(first.Close()).To(Succeed())
		_, err = lockFolder(dir, other)
		Expect(err).To(MatchError(And(ContainSubstring(issuer), ContainSubstring(dir), ContainSubstring("--data"))))
		Expect(second.Close()).To(Succeed())
		next, err := lockFolder(dir, other)
		Expect(err).NotTo(HaveOccurred(), "after all have ended")
		Expect(next.Close()).To(Succeed())
	})
})
