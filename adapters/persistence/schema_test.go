package persistence

import (
	"os"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("SCHEMA.md", func() {
	var page string
	var store *Store
	BeforeEach(func() {
		content, err := os.ReadFile("SCHEMA.md")
		Expect(err).NotTo(HaveOccurred())
		page, store = string(content), openIn(GinkgoT().TempDir())
	})

	It("describes every column of every table", func() {
		var columns []string
		Expect(store.reader.Raw(
			`SELECT t.name || '.' || lower(c.name) || ' ' || upper(c.type)
			FROM sqlite_schema t, pragma_table_info(t.name) c
			WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'`).Scan(&columns).Error).To(Succeed())
		Expect(described(page)).To(ConsistOf(columns))
	})

	It("justifies every index", func() {
		var indexes []string
		Expect(store.reader.Raw(
			`SELECT name || ' ' || tbl_name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL`).
			Scan(&indexes).Error).To(Succeed())
		var justified []string
		for _, line := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `[\\w`, ]+` \\|").
			FindAllStringSubmatch(page, -1) {
			table, _, _ := strings.Cut(line[1], "_by_")
			justified = append(justified, line[1]+" "+table)
		}
		Expect(justified).To(ConsistOf(indexes))
	})
})

// described lists the columns of the page as "table.column TYPE".
func described(page string) (columns []string) {
	for _, section := range strings.Split(page, "\n## ")[1:] {
		table, isTable := strings.CutPrefix(strings.SplitN(section, "\n", 2)[0], "Table ")
		if !isTable {
			continue
		}
		for _, line := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\|").FindAllStringSubmatch(section, -1) {
			columns = append(columns, strings.Trim(table, "`")+"."+line[1]+" "+line[2])
		}
	}
	return columns
}
