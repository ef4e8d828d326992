package oauth

import (
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/domain/toolset"
)

var _ = Describe("The tools of a connection", func() {
	after := func(tools ...toolset.Tool) toolset.Pins {
		return toolset.Pins{}.After(toolset.List{Tools: tools, IsFirst: true})
	}
	tool := func(name, definition string) toolset.Tool { return toolset.New(name, []byte(definition)) }
	approved := after(tool("write", "writes"))

	It("are those of the newest active connection of the same client", Label("B26"), func() {
		resource := NewResource("https://cms.example/mcp")
		grant := func(client string, at time.Time, tools toolset.Pins) *AccessGrant {
			return RestoreGrant(GrantSnapshot{
				ConsentSnapshot: ConsentSnapshot{
					ClientID:  client,
					Resource:  resource.String(),
					CreatedAt: at,
					State:     string(grantActive),
				},
				IdleEnd: noon.Add(time.Hour),
				Tools:   tools.String(),
			})
		}
		newer := after(tool("read", "reads"))
		ended := grant("https://app.example/", noon.Add(2*time.Minute), after())
		ended.End(EndedByPerson, noon)
		all := Authorizations{Grants: []*AccessGrant{
			grant("https://app.example/", noon.Add(time.Minute), newer), grant("https://app.example/", noon, approved),
			ended,
			grant("https://other.example/", noon.Add(4*time.Minute), approved),
		}}
		client := RestoreClientID("https://app.example/")
		Expect(all.LatestTools(client, resource, noon)).To(Equal(newer))
		Expect(all.LatestTools(client, NewResource("https://cms.example/more"), noon)).To(Equal(toolset.Pins{}))
		Expect(all.LatestTools(client, resource, noon.Add(time.Hour))).To(Equal(toolset.Pins{}))
	})

	It("have been reviewed with the form that was shown, in its time", Label("B26", "B4"), func() {
		settings := settingsOf()
		host, err := ParseHostToken("host-token")
		Expect(err).NotTo(HaveOccurred())
		var review *ToolReview
		Expect(errors.As(NewToolReview(host, "ticket", approved, settings, noon), &review)).To(BeTrue())
		Expect(review.Sealed).NotTo(ContainSubstring("host-token"))
		opened, err := OpenToolReview(review.Sealed, "ticket", settings, noon)
		Expect(err).NotTo(HaveOccurred())
		Expect(opened.Host).To(Equal(host))
		Expect(opened.Include(approved)).To(BeTrue())
		Expect(opened.Include(after())).To(BeFalse())
		_, err = OpenToolReview(review.Sealed, "other", settings, noon)
		Expect(err).To(Refused(InvalidTicket))
		_, err = OpenToolReview(review.Sealed, "ticket", settings, noon.Add(TicketTTL))
		Expect(err).To(Refused(ExpiredTicket))
		sealed, err := SealReturn(Redirect{}, settings, noon)
		Expect(err).NotTo(HaveOccurred())
		_, err = OpenToolReview(sealed, "", settings, noon)
		Expect(err).To(Refused(InvalidTicket))
	})
})
