package oauth

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func tool(name, definition string) Tool { return NewTool(name, definition, []byte(definition)) }

var _ = Describe("Tools that a person has approved", func() {
	digestsOf := func(tools ...Tool) ToolDigests {
		GinkgoHelper()
		digests, err := NewToolDigests(tools)
		Expect(err).NotTo(HaveOccurred())
		return digests
	}
	approved := digestsOf(tool("read", "reads"), tool("write", "writes"), tool("old", "is old"))

	It("are compared with those that the server lists", Label("G23"), func() {
		listed := []Tool{tool("read", "reads"), tool("write", "writes more"), tool("new", "is new")}
		Expect(approved.Check("read", listed)).To(Succeed())
		Expect(approved.Check("write", listed)).To(Refused(InsufficientScope))
		Expect(approved.Check("new", listed)).To(Refused(InsufficientScope))
		Expect(approved.Check("old", listed)).To(MatchError(ErrUnlistedTool))
		Expect(ToolDigests{}.Check("read", listed)).To(Refused(InsufficientScope))
		Expect(RestoreToolDigests("damaged").Check("read", listed)).To(Refused(InsufficientScope))
		changes := approved.Changes(listed)
		Expect(changes.New).To(ConsistOf(tool("new", "is new")))
		Expect(changes.Changed).To(ConsistOf(tool("write", "writes more")))
		Expect(changes.Gone).To(ConsistOf(HaveField("Name", "old")))
		Expect(approved.Changes([]Tool{tool("old", "is old"), tool("write", "writes"), tool("read", "reads")}).Empty()).
			To(BeTrue())
		Expect(ToolDigests{}.Changes(listed).Empty()).To(BeTrue())
	})

	It("are described in at most 1,000 bytes of whole characters", Label("B26"), func() {
		long := NewTool("read", "a"+strings.Repeat("ö", 1000), nil)
		Expect(long.Description).To(Equal("a" + strings.Repeat("ö", 499)))
	})

	It("differ when a name is listed twice", Label("G23"), func() {
		twice := []Tool{tool("read", "reads"), tool("read", "reads and tells")}
		Expect(approved.Check("read", twice)).To(Refused(InsufficientScope))
		Expect(digestsOf(twice...).Check("read", twice[1:])).To(Refused(InsufficientScope))
		Expect(digestsOf(twice...).Check("read", twice)).To(Succeed())
	})

	It("are kept as a text that is sorted, and bounded by what every store can keep", Label("H4"), func() {
		Expect(digestsOf(tool("b", "1"), tool("a", "2")).String()).
			To(MatchRegexp(`^\?a=[\w-]{32}&b=[\w-]{32}$`))
		Expect(digestsOf()).To(And(HaveField("String()", "?"), HaveField("AreBound()", true)))
		Expect(approved.IsReadable()).To(BeTrue())
		Expect(RestoreToolDigests("?b=1&a=1").IsReadable()).To(BeFalse())
		var many []Tool
		for i := range 1000 {
			many = append(many, tool(fmt.Sprintf("%s-%d", strings.Repeat("x", 60), i), ""))
		}
		_, err := NewToolDigests(many)
		Expect(err).To(MatchError(ContainSubstring("60,000 bytes")))
	})

	It("are those of the newest active connection of the same client", Label("B26"), func() {
		resource := NewResource("https://cms.example/mcp")
		grant := func(client string, at time.Time, tools ToolDigests) *AccessGrant {
			return RestoreGrant(GrantSnapshot{
				ClientID:  client,
				Resource:  resource.String(),
				CreatedAt: at,
				State:     string(grantActive),
				IdleEnd:   noon.Add(time.Hour),
				Tools:     tools.String(),
			})
		}
		newer := digestsOf(tool("read", "reads"))
		ended := grant("https://app.example/", noon.Add(2*time.Minute), digestsOf())
		ended.End(EndedByPerson, noon)
		all := Authorizations{Grants: []*AccessGrant{
			grant("https://app.example/", noon.Add(time.Minute), newer), grant("https://app.example/", noon, approved),
			ended, grant("https://app.example/", noon.Add(3*time.Minute), ToolDigests{}),
			grant("https://other.example/", noon.Add(4*time.Minute), approved),
		}}
		client := RestoreClientID("https://app.example/")
		Expect(all.LatestTools(client, resource, noon)).To(Equal(newer))
		Expect(all.LatestTools(client, NewResource("https://cms.example/more"), noon)).To(Equal(ToolDigests{}))
		Expect(all.LatestTools(client, resource, noon.Add(time.Hour))).To(Equal(ToolDigests{}))
	})

	It("have been reviewed with the form that was shown, in its time", Label("B26", "B4"), func() {
		settings := settingsOf()
		host, err := ParseHostToken("host-token")
		Expect(err).NotTo(HaveOccurred())
		var review *ToolReview
		Expect(errors.As(NewToolReview(host, "ticket", approved, ToolChanges{}, settings, noon), &review)).To(BeTrue())
		Expect(review.Sealed).NotTo(ContainSubstring("host-token"))
		opened, err := OpenToolReview(review.Sealed, "ticket", settings, noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(opened.Host).To(Equal(host))
		Expect(opened.Include(approved)).To(BeTrue())
		Expect(opened.Include(digestsOf())).To(BeFalse())
		_, err = OpenToolReview(review.Sealed, "other", settings, noon)
		Expect(err).To(Refused(InvalidTicket))
		_, err = OpenToolReview(review.Sealed, "ticket", settings, noon.Add(settings.TicketTTL))
		Expect(err).To(Refused(ExpiredTicket))
		sealed, err := SealReturn(Redirect{}, settings, noon)
		Expect(err).NotTo(HaveOccurred())
		_, err = OpenToolReview(sealed, "", settings, noon)
		Expect(err).To(Refused(InvalidTicket))
	})

	It("pass from the code to the grant", Label("G23", "I2"), func() {
		request, err := ask(settingsOf())
		Expect(err).NotTo(HaveOccurred())
		ticket, err := NewTicket(request, rand.Reader, noon)
		Expect(err).NotTo(HaveOccurred())
		host, err := ParseHostToken("host-token")
		Expect(err).NotTo(HaveOccurred())
		code, err := IssueCode(Approval{
			Ticket:    ticket,
			Host:      host,
			Principal: Principal{Subject: "ann"},
			Tools:     approved,
			Code:      newSecret(CodeSecret),
			Random:    rand.Reader,
		}, settingsOf(), noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(RestoreCode(code.Snapshot()).tools).To(Equal(approved))
	})
})
