// Command measure prints how the code of the module looks, beside the target of each figure. Laws
// are the figures about lines and the budgets of features/laws/budgets.tsv: it names each line and
// each package that breaks one, and then exits with 1. The other targets are aims. Generated files
// do not count.
//
//	go run ./features/laws/measure
//	go run ./features/laws/measure -lower # lowers the budgets to today's lines
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pasteport/pasteport/features/matrix"
)

const (
	maxCode     = 120 // columns, where a tab counts as 4
	maxComment  = 100
	maxKeyed    = 3 // fields of a literal that may share a line
	productTops = "adapters application bootstrap domain"
	adapters    = "github.com/pasteport/pasteport/adapters/"
)

// The laws.
const (
	longCode       = "lines of code over 120 columns"
	longComment    = "comment lines over 100 columns"
	sharedLines    = "literals of more than three fields with two on a line"
	citedRules     = "comments that cite a rule"
	siblingImports = "imports between sibling adapters"
	overBudget     = "packages over their budget"
)

var laws = []string{longCode, longComment, sharedLines, citedRules, siblingImports, overBudget}

// cited matches the number or the letter of a rule in a comment.
var cited = regexp.MustCompile(`\([A-Z]{1,2}[0-9]{0,2}(, [A-Z]{1,2}[0-9]{1,2})*[,)]|for [A-Z][0-9]{1,2}$`)

// report is what the files are like.
type report struct {
	lines     map[string]int      // lines of the product in each folder, without its tests
	functions []int               // lines of each function of the product
	breaches  map[string][]string // by law
}

func main() {
	lower := flag.Bool("lower", false, "lower the budgets to today's lines")
	flag.Parse()
	r := report{lines: map[string]int{}, breaches: map[string][]string{}}
	if err := filepath.WalkDir(".", r.visit); err != nil {
		fail(fmt.Errorf("measuring: %w", err))
	}
	budgets, err := readBudgets()
	if err != nil {
		fail(err)
	}
	sum := budgets.count(r.lines)
	if *lower {
		if err := budgets.lower(); err != nil {
			fail(err)
		}
		return
	}
	for _, b := range budgets {
		if b.now > b.most {
			r.breaches[overBudget] = append(r.breaches[overBudget],
				fmt.Sprintf("%s: %d lines, budget %d", strings.Join(b.folders, ", "), b.now, b.most))
		}
	}
	slices.Sort(r.functions)
	last := len(r.functions) - 1
	compare("product lines", 39_000, sum)
	compare("lines of a function, median", 8, r.functions[last/2])
	compare("lines of a function, maximum", 62, r.functions[last])
	broken := 0
	for _, law := range laws {
		compare(law, 0, len(r.breaches[law]))
		broken += len(r.breaches[law])
	}
	for _, law := range laws {
		for _, breach := range r.breaches[law] {
			fmt.Println(breach)
		}
	}
	fmt.Printf("%d breaches of a law\n", broken)
	if broken > 0 {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}

// compare prints a figure beside its target, which it should not exceed.
func compare(figure string, target, now int) {
	missed := ""
	if now > target {
		missed = ", missed"
	}
	fmt.Printf("%-55s target %d, now %d%s\n", figure+":", target, now, missed)
}

// visit measures a Go file.
func (r *report) visit(path string, entry fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case entry.IsDir() && path != "." && path != "bench" && matrix.Foreign(path):
		return filepath.SkipDir
	case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_templ.go"):
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing: %w", err)
	}
	r.measureLines(path, text)
	top, _, _ := strings.Cut(filepath.ToSlash(path), "/")
	isProduct := !strings.HasSuffix(path, "_test.go") &&
		(path == top || slices.Contains(strings.Fields(productTops), top))
	if isProduct {
		r.lines[filepath.ToSlash(filepath.Dir(path))] += bytes.Count(text, []byte("\n"))
		r.measureImports(files, path, file.Imports)
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if cited.MatchString(comment.Text) {
				r.add(citedRules, path, files.Position(comment.Pos()).Line, "cites a rule in a comment")
			}
		}
	}
	for node := range ast.Preorder(file) {
		switch node := node.(type) {
		case *ast.FuncDecl:
			if isProduct {
				r.functions = append(r.functions, files.Position(node.End()).Line-files.Position(node.Pos()).Line+1)
			}
		case *ast.CompositeLit:
			r.measureLiteral(files, node)
		}
	}
	return nil
}

// measureLines reports lines that are too long.
func (r *report) measureLines(path string, text []byte) {
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSuffix(line, "\n")
		columns := len([]rune(line)) + 3*strings.Count(line, "\t")
		comment := strings.HasPrefix(strings.TrimLeft(line, "\t"), "//")
		switch {
		case strings.Contains(line, ` doc:"`), strings.Contains(line, `jsonschema:"`): // a tag cannot be wrapped
		case columns > maxCode:
			r.add(longCode, path, number, "has %d columns", columns)
		case comment && columns > maxComment && strings.Contains(strings.TrimSpace(line)[2:], " "):
			r.add(longComment, path, number, "is a comment of %d columns", columns)
		}
	}
}

// measureImports reports imports of an adapter in another one.
func (r *report) measureImports(files *token.FileSet, path string, imports []*ast.ImportSpec) {
	own, isAdapter := strings.CutPrefix(filepath.ToSlash(path), "adapters/")
	if !isAdapter {
		return
	}
	own, _, _ = strings.Cut(own, "/")
	for _, spec := range imports {
		other, found := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), adapters)
		other, _, _ = strings.Cut(other, "/")
		if found && other != own && other != "internal" {
			r.add(siblingImports, path, files.Position(spec.Pos()).Line, "imports the adapter %s", other)
		}
	}
}

// measureLiteral reports a literal of more than three fields with two of them on one line.
func (r *report) measureLiteral(files *token.FileSet, literal *ast.CompositeLit) {
	keyed, previous, shared := 0, 0, false
	for _, element := range literal.Elts {
		if _, ok := element.(*ast.KeyValueExpr); ok {
			keyed++
			shared = shared || files.Position(element.Pos()).Line == previous
		}
		previous = files.Position(element.End()).Line
	}
	if at := files.Position(literal.Pos()); shared && keyed > maxKeyed {
		r.add(sharedLines, at.Filename, at.Line, "is a literal of %d fields that are not on a line each", keyed)
	}
}

func (r *report) add(law, path string, line int, format string, values ...any) {
	r.breaches[law] = append(r.breaches[law], fmt.Sprintf("%s:%d %s", path, line, fmt.Sprintf(format, values...)))
}
