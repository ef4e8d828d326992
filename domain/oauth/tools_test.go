package oauth

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func tool(name, definition string) Tool { return NewTool(name, []byte(definition)) }

// after returns the pins after a first list.
func after(tools ...Tool) ToolPins { return ToolPins{}.After(ToolList{Tools: tools, IsWhole: true}) }

var _ = Describe("The tools that a client got first", func() {
	approved := after(tool("read", "reads"), tool("write", "writes"), tool("old", "is old"))

	It("are compared with those of later lists", Label("G23"), func() {
		later := ToolList{
			Tools:   []Tool{tool("read", "reads"), tool("write", "writes more"), tool("new", "is new")},
			IsWhole: true,
		}
		pins := approved.After(later)
		Expect(pins.Changes()).To(Equal(ToolChanges{[]string{"new"}, []string{"write"}, []string{"old"}}))
		for name, permitted := range map[string]bool{
			"read":  true,
			"write": false,
			"new":   false,
			"other": false,
			"old":   true,
		} {
			Expect(pins.Permits()(name)).To(Equal(permitted), name)
		}
		Expect(pins.After(later)).To(Equal(pins), "the same list again")
		same := ToolList{
			Tools:   []Tool{tool("old", "is old"), tool("write", "writes"), tool("read", "reads")},
			IsWhole: true,
		}
		Expect(pins.After(same).Changes().Empty()).To(BeTrue())
		Expect(approved.After(same)).To(Equal(approved))
		Expect(ToolPins{}.Permits()("read")).To(BeTrue(), "no list yet")
		Expect(RestoreToolPins("damaged").Permits()("read")).To(BeFalse())
	})

	It("take less than 50 MiB for 2,000 people with the same 900 tools", Label("H4"), func() {
		var many []Tool
		for i := range 900 {
			many = append(many, tool(fmt.Sprintf("collection_%d_search", i), "searches"))
		}
		text, heap := after(many...).String(), func() uint64 {
			var stats runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&stats)
			return stats.HeapAlloc
		}
		before := heap()
		var grants []*AccessGrant
		for range 2000 {
			grants = append(grants, RestoreGrant(GrantSnapshot{Tools: strings.Clone(text)}))
		}
		Expect(int64(heap()) - int64(before)).To(BeNumerically("<", 50<<20))
		Expect(grants[1999].Tools().Permits()("collection_899_search")).To(BeTrue())
	})

	It("are kept as a text that is bounded by what every store can keep", Label("H4"), func() {
		Expect(after(tool("b", "1"), tool("a", "2")).String()).
			To(MatchRegexp(`^\?tool\+a=[\w-]{32}&tool\+b=[\w-]{32}$`))
		Expect(approved.IsReadable()).To(BeTrue())
		Expect(RestoreToolPins("?x=1").IsReadable()).To(BeFalse())
		var many []Tool
		for i := range 2000 {
			many = append(many, tool(fmt.Sprintf("%s-%d", strings.Repeat("x", 60), i), ""))
		}
		pins := after(many...)
		Expect(len(pins.String())).To(BeNumerically("<", 64_000))
		Expect(pins.Changes().New).To(HaveLen(maxToolChanges))
	})

	It("are those of the newest active connection of the same client", Label("B26"), func() {
		resource := NewResource("https://cms.example/mcp")
		grant := func(client string, at time.Time, tools ToolPins) *AccessGrant {
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
		Expect(all.LatestTools(client, NewResource("https://cms.example/more"), noon)).To(Equal(ToolPins{}))
		Expect(all.LatestTools(client, resource, noon.Add(time.Hour))).To(Equal(ToolPins{}))
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
