// Command measure prints how the code of the module looks: how long it, its functions and its lines
// are, and which lines break a rule of CONTRIBUTING.md. It exits with 1 if a line does. Generated
// files do not count.
//
//	go run ./features/laws/measure
package main

import (
	"bytes"
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
)

// cited matches the number or the letter of a rule in a comment.
var cited = regexp.MustCompile(`\([A-Z]{1,2}[0-9]{0,2}(, [A-Z]{1,2}[0-9]{1,2})*\)|for [A-Z][0-9]{1,2}$`)

// report is what the files are like.
type report struct {
	product   int // lines of the product, without its tests
	functions []int
	breaches  []string
}

func main() {
	var r report
	if err := filepath.WalkDir(".", r.visit); err != nil {
		fmt.Fprintln(os.Stderr, "measuring:", err)
		os.Exit(2)
	}
	slices.Sort(r.functions)
	last := len(r.functions) - 1
	fmt.Printf("%d product lines\n", r.product)
	fmt.Printf("functions of %d lines in the median, %d at the 95th percentile, %d at most\n",
		r.functions[last/2], r.functions[last*95/100], r.functions[last])
	for _, breach := range r.breaches {
		fmt.Println(breach)
	}
	fmt.Printf("%d lines break a rule\n", len(r.breaches))
	if len(r.breaches) > 0 {
		os.Exit(1)
	}
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
	isProduct := slices.Contains(strings.Fields(productTops), top) && !strings.HasSuffix(path, "_test.go")
	if isProduct {
		r.product += bytes.Count(text, []byte("\n"))
	}
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if cited.MatchString(comment.Text) {
				r.add(path, files.Position(comment.Pos()).Line, "cites a rule in a comment")
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
		case strings.Contains(line, `jsonschema:"`): // a struct tag cannot be wrapped
		case columns > maxCode:
			r.add(path, number, "has %d columns", columns)
		case comment && columns > maxComment && strings.Contains(strings.TrimSpace(line)[2:], " "):
			r.add(path, number, "is a comment of %d columns", columns)
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
		r.add(at.Filename, at.Line, "is a literal of %d fields that are not on a line each", keyed)
	}
}

func (r *report) add(path string, line int, format string, values ...any) {
	r.breaches = append(r.breaches, fmt.Sprintf("%s:%d %s", path, line, fmt.Sprintf(format, values...)))
}
