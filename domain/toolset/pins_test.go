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
func after(tools ...Tool) Pins { return Pins{}.After(List{Tools: tools, IsWhole: true}) }

var _ = Describe("The tools that a client got first", func() {
	approved := after(tool("read", "reads"), tool("write", "writes"), tool("old", "is old"))

	It("are compared with those of later lists", Label("G23"), func() {
		later := List{
			Tools:   []Tool{tool("read", "reads"), tool("write", "writes more"), tool("new", "is new")},
			IsWhole: true,
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
			IsWhole: true,
		}
		Expect(pins.After(same).Changes().Empty()).To(BeTrue())
		Expect(approved.After(same)).To(Equal(approved))
		Expect(Pins{}.Permits()("read")).To(BeTrue(), "no list yet")
		Expect(Restore("damaged").Permits()("read")).To(BeFalse())
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
		Expect(pins.Changes().New).To(HaveLen(maxChanges))
	})
})
