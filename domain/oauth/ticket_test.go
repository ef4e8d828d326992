package oauth

import (
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The id of a ticket", Label("H5"), func() {
	It("sorts by time, so that new rows lie side by side", func() {
		request, err := ask(settingsOf())
		Expect(err).NotTo(HaveOccurred())
		var ids []string
		for i := range 20 {
			ticket, err := NewTicket(request, rand.Reader, noon.Add(time.Duration(i)*time.Millisecond))
			Expect(err).NotTo(HaveOccurred())
			Expect(ticket.ID()).To(HaveLen(2 * ticketIDBytes))
			ids = append(ids, ticket.ID())
		}
		Expect(slices.IsSorted(ids)).To(BeTrue())
	})
})

var _ = DescribeTable("Typing an id", Label("trace"), func(typed string, means bool) {
	Expect(MatchesID(typed, "019c0123456789abcdef0123456789ab")).To(Equal(means))
},
	Entry("whole", "019c0123456789abcdef0123456789ab", true),
	Entry("as its beginning", "019c01", true),
	Entry("as a list shows it", ShortID("019c0123456789abcdef0123456789ab"), true),
	Entry("as the beginning of that", "89a", true),
	Entry("from its middle", "9abcdef", false),
	Entry("with more behind it", "019c0123456789abcdef0123456789ab0", false),
)

var _ = DescribeTable("Showing an id", Label("trace"), func(id, shown string) {
	Expect(ShortID(id)).To(Equal(shown))
},
	Entry("by what stands behind its time", "019c0123456789abcdef0123456789ab", "89abcdef"),
	Entry("that is short already", "abc", "abc"),
	Entry("of none", "", ""),
)

type noChance struct{}

func (noChance) Read([]byte) (int, error) { return 0, errors.New("no chance left") }

var _ = Describe("A consent ticket", Label("B4"), func() {
	settings := settingsOf()
	sealed := func() string {
		GinkgoHelper()
		request, err := ask(settings)
		Expect(err).NotTo(HaveOccurred())
		ticket, err := NewTicket(request, rand.Reader, noon)
		Expect(err).NotTo(HaveOccurred())
		text, err := ticket.Seal()
		Expect(err).NotTo(HaveOccurred())
		return text
	}

	It("carries what was shown, exactly", func() {
		ticket, err := OpenTicket(sealed(), settings, noon)
		Expect(err).NotTo(HaveOccurred())
		request, _ := ask(settings)
		request.Client.MayRefresh = false // it has decided about the scopes
		Expect(ticket.Request()).To(Equal(request))
	})

	It("is worthless to another issuer, another secret, and for another purpose", func() {
		text := sealed()
		for _, other := range []*Settings{
			settingsOf(func(c *Config) { c.Issuer = "https://other.example" }),
			settingsOf(func(c *Config) { c.Secret = append(make([]byte, MinSecretLength), 1) }),
		} {
			_, err := OpenTicket(text, other, noon)
			Expect(err).To(Refused(InvalidTicket))
		}
		_, err := OpenReturn(text, settings, noon)
		Expect(err).To(Refused(InvalidTicket))
	})

	DescribeTable("is worthless to another issuer with the same secret and resource",
		Label("B17"), func(open func(text string, other *Settings) error, seal func() string) {
			other := settingsOf(func(c *Config) {
				c.Issuer, c.Resource = "https://other.example", settings.Resources[0].Resource.String()
			})
			Expect(open(seal(), settings)).To(Succeed())
			Expect(open(seal(), other)).To(Refused(InvalidTicket))
		},
		Entry("on a consent page", func(text string, other *Settings) error {
			_, err := OpenTicket(text, other, noon)
			return err
		}, sealed),
		Entry("behind a return button", func(text string, other *Settings) error {
			_, err := OpenReturn(text, other, noon)
			return err
		}, func() string {
			text, err := SealReturn(Redirect{Location: "https://client.example/", Host: "client.example"},
				settings, noon)
			Expect(err).NotTo(HaveOccurred())
			return text
		}),
	)

	It("fits into its form however long the request is", Label("B1", "A22"), func() {
		slashes := strings.Repeat("/", 1900)
		client := Client{ID: RestoreClientID("https://client.example" + slashes), Name: strings.Repeat("字", 200)}
		request, err := NewAuthorizationRequest(client, RestoreRedirectURI(client.ID.String()), Parameters{
			"response_type":         {"code"},
			"state":                 {strings.Repeat("/", maxStateLength)},
			"code_challenge":        {challengeOf(verifier)},
			"code_challenge_method": {"S256"},
		}, settings)
		Expect(err).NotTo(HaveOccurred())
		ticket, err := NewTicket(request, rand.Reader, noon)
		Expect(err).NotTo(HaveOccurred())
		text, err := ticket.Seal()
		Expect(err).NotTo(HaveOccurred())
		Expect(len(text)).To(BeNumerically("<", 16<<10), "which leaves room for the token in 32 KiB")
		Expect(OpenTicket(text, settings, noon)).To(HaveField("Request()", request))
	})

	It("carries to the grant how the client authenticates", Label("C30", "D33"), func() {
		request, err := ask(settings)
		Expect(err).NotTo(HaveOccurred())
		request.Client.AuthMethod = PrivateKeyJWT
		text, err := (&Ticket{id: "t", issuedAt: noon, request: request}).Seal()
		Expect(err).NotTo(HaveOccurred())
		opened, err := OpenTicket(text, settings, noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(opened.request.Client.AuthMethod).To(Equal(PrivateKeyJWT))
	})

	It("is worthless when one bit is changed", func() {
		text := []byte(sealed())
		for i := range text {
			changed := append([]byte(nil), text...)
			if changed[i] == 'A' {
				changed[i] = 'B'
			} else {
				changed[i] = 'A'
			}
			_, err := OpenTicket(string(changed), settings, noon)
			Expect(err).To(Refused(InvalidTicket))
		}
	})

	It("dies after ten minutes, at the exact instant", Label("I20"), func() {
		text := sealed()
		_, err := OpenTicket(text, settings, noon.Add(10*time.Minute-time.Millisecond))
		Expect(err).NotTo(HaveOccurred())
		_, err = OpenTicket(text, settings, noon.Add(10*time.Minute))
		Expect(err).To(Refused(ExpiredTicket))
	})
})
