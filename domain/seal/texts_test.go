package seal

import (
	"strings"
	"unsafe"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = It("does not keep all packed texts in memory for one of them", func() {
	first, second := strings.Repeat("a", 40), strings.Repeat("b", 100)
	texts, err := UnpackTexts(PackTexts(first, second))
	Expect(err).NotTo(HaveOccurred())
	at := func(i int) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(texts[i]))) }
	Expect(at(1)-at(0)).NotTo(BeEquivalentTo(len(first+"100:")), "where it is in the whole")
})
