package message

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing/iotest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Reading a body", Label("G13"), func() {
	const limit = 10
	DescribeTable("reads the bytes that arrive, for any announced length:",
		func(length, announced int, readers ...func(io.Reader) io.Reader) {
			for _, reading := range append(readers, func(r io.Reader) io.Reader {
				return r
			}, iotest.OneByteReader, iotest.DataErrReader) {
				text := bytes.Repeat([]byte("x"), length)
				r := httptest.NewRequest(http.MethodPost, "/mcp", reading(bytes.NewReader(text)))
				r.ContentLength = int64(announced)
				reserved := NewBodyMemory(2 * limit).Reserve("alice")
				body, err := ReadBody(r, limit, &reserved)
				if length > limit {
					Expect(err).To(Equal(TooLargeError{limit}))
					continue
				}
				Expect(reserved.reserved).To(And(BeNumerically(">=", length), BeNumerically("<=", limit+1)))
				Expect(cap(body)).To(BeNumerically("<=", reserved.reserved))
				Expect(err).NotTo(HaveOccurred())
				Expect(body).To(Equal(text))
			}
		},
		Entry("nothing", 0, 0), Entry("nothing, of unknown length", 0, -1), Entry("less than the limit", 9, 9),
		Entry("as much as the limit", 10, 10), Entry("as much, of unknown length", 10, -1),
		Entry("more than the limit", 11, 11), Entry("more, of unknown length", 11, -1),
		Entry("more than announced", 11, 3),
		Entry("a little more than announced", 4, 3), Entry("less than announced", 4, 10),
		Entry("far less than announced", 4, 1<<40),
	)

	It("fails for an incomplete body", func() {
		for _, announced := range []int64{-1, 0, 3, 8} {
			r := httptest.NewRequest(http.MethodPost, "/mcp",
				io.MultiReader(bytes.NewReader([]byte("half")), iotest.ErrReader(io.ErrUnexpectedEOF)))
			r.ContentLength = announced
			reserved := NewBodyMemory(limit).Reserve("alice")
			_, err := ReadBody(r, limit, &reserved)
			Expect(err).To(MatchError(io.ErrUnexpectedEOF))
		}
	})
})
