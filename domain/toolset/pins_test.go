package toolset

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/suite"
)

func TestToolset(t *testing.T) { suite.Run(t, "The tools of a grant") }

func tool(name, definition string) Tool { return New(name, []byte(definition)) }

// after returns the pins after a first list.
func after(tools ...Tool) Pins { return Pins{}.After(List{Tools: tools, IsFirst: true}) }

var _ = Describe("The tools that a client got first", func() {
	approved := after(tool("read", "reads"), tool("write", "writes"), tool("old", "is old"))

	It("are compared with those of later lists", Label("G23"), func() {
		later := List{
			Tools:   []Tool{tool("read", "reads"), tool("write", "writes more"), tool("new", "is new")},
			IsFirst: true,
		}
		pins := approved.After(later)
		Expect(pins.Changes()).To(Equal(Changes{[]string{"new"}, []string{"write"}, []string{"old"}}))
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
		same := List{
			Tools:   []Tool{tool("old", "is old"), tool("write", "writes"), tool("read", "reads")},
			IsFirst: true,
		}
		Expect(pins.After(same).Changes().Empty()).To(BeTrue())
		Expect(approved.After(same)).To(Equal(approved))
		Expect(Pins{}.Permits()("read")).To(BeTrue(), "no list yet")
		Expect(Restore("damaged").Permits()("read")).To(BeFalse())
	})

	It("are compared one by one, however many have changed", Label("G23"), func() {
		var first, later []Tool
		for i := range 60 {
			name := fmt.Sprintf("t%02d", i)
			first, later = append(first, tool(name, "reads")), append(later, tool(name, "sends"))
		}
		pins := after(first...).After(List{Tools: later, IsFirst: true})
		for _, one := range later {
			Expect(pins.Permits()(one.name)).To(BeFalse(), one.name)
		}
		Expect(pins.Changes().Changed).To(And(HaveLen(maxChanges+1), ContainElements("t00", "t49", "…")))
		Expect(pins.IsReadable()).To(BeTrue())
		var added, others []Tool
		for i := range 60 {
			name := fmt.Sprintf("%02d", i)
			added, others = append(added, tool("a"+name, "")), append(others, tool("b"+name, ""))
		}
		replaced := pins.After(List{Tools: added, IsFirst: true}).After(List{Tools: others, IsFirst: true})
		Expect(replaced.Changes().New).To(And(HaveLen(maxChanges+1), ContainElements("b00", "b49", "…")))
		gone := pins.After(List{IsFirst: true})
		Expect(gone.Permits()("t59")).To(BeFalse())
		Expect(gone.Changes().Gone).To(ContainElements("t00", "…"))
	})

	It("end with the last page, and when a client asks for the first page again", Label("G23"), func() {
		open := Pins{}.After(List{Tools: []Tool{tool("read", "reads")}, IsFirst: true, More: true})
		Expect(open.Permits()("never-listed")).To(BeFalse())
		Expect(open.After(List{Tools: []Tool{tool("write", "writes")}}).Permits()("write")).To(BeTrue())
		more := []Tool{tool("read", "reads"), tool("new", "is new")}
		again := open.After(List{Tools: more, IsFirst: true, More: true})
		Expect(again.Permits()("new")).To(BeFalse())
		Expect(again.Changes().New).To(ConsistOf("new"))
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
		var grants []Pins
		for range 2000 {
			grants = append(grants, Restore(strings.Clone(text)))
		}
		Expect(int64(heap()) - int64(before)).To(BeNumerically("<", 50<<20))
		Expect(grants[1999].Permits()("collection_899_search")).To(BeTrue())
	})

	It("are kept as a text that is bounded by what every store can keep", Label("H4"), func() {
		Expect(after(tool("b", "1"), tool("a", "2")).String()).
			To(MatchRegexp(`^\?tool\+a=[\w-]{32}&tool\+b=[\w-]{32}$`))
		Expect(approved.IsReadable()).To(BeTrue())
		Expect(Restore("?x=1").IsReadable()).To(BeFalse())
		var many []Tool
		for i := range 2000 {
			many = append(many, tool(fmt.Sprintf("%s-%d", strings.Repeat("x", 60), i), ""))
		}
		pins := after(many...)
		Expect(len(pins.String())).To(BeNumerically("<", 64_000))
		Expect(pins.Changes().New).To(And(HaveLen(maxChanges+1), ContainElement("…")))
		many = nil
		for i := range 300 {
			many = append(many, tool(fmt.Sprintf("%s%03d", strings.Repeat("a/", 62), i), ""))
		}
		pins = after(many...)
		Expect(len(pins.After(List{IsFirst: true}).String())).To(BeNumerically("<", 1<<16), "also without these tools")
		Expect(pins.Changes().New).NotTo(BeEmpty())
	})
})
