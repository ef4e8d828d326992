package matrix

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const ginkgo = `"github.com/onsi/ginkgo/v2"`

// pkg is the source of a package that has specs.
type pkg struct {
	files     map[string]*ast.File // with specs, by path from the root of the module
	constants map[string]ast.Expr
	functions map[string]*ast.FuncDecl
	cited     []Citation
}

// readSource returns every spec of the module, sorted by file, and the rules that its other files
// cite.
func readSource(root string) (specs []Spec, cited []Citation, err error) {
	packages, err := readPackages(root)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range packages {
		cited = append(cited, p.cited...)
		for name, file := range p.files {
			r := reader{pkg: p, file: name}
			for _, decl := range file.Decls {
				if variable, ok := decl.(*ast.GenDecl); ok && variable.Tok == token.VAR {
					r.read(variable, nil)
				}
			}
			specs = append(specs, r.specs...)
		}
	}
	slices.SortStableFunc(specs, func(a, b Spec) int { return strings.Compare(a.File, b.File) })
	return specs, cited, nil
}

func readPackages(root string) (map[string]*pkg, error) {
	packages := map[string]*pkg{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && Foreign(path):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		return addFile(packages, root, path)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the specs: %w", err)
	}
	return packages, nil
}

// Foreign reports whether Go ignores a folder when it lists the packages of the module.
func Foreign(dir string) bool {
	base := filepath.Base(dir)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func addFile(packages map[string]*pkg, root, path string) error {
	name, err := filepath.Rel(root, path)
	if err != nil {
		return fmt.Errorf("finding the path of %s in the module: %w", path, err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing: %w", err)
	}
	hasSpecs := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == ginkgo })
	key := filepath.Dir(name) + ":" + file.Name.Name
	if packages[key] == nil {
		packages[key] = &pkg{files: map[string]*ast.File{}, constants: map[string]ast.Expr{},
			functions: map[string]*ast.FuncDecl{}}
	}
	if hasSpecs {
		packages[key].files[filepath.ToSlash(name)] = file
	}
	packages[key].declare(file)
	if !strings.HasSuffix(name, "_test.go") && !strings.HasPrefix(name, "features") {
		packages[key].cite(filepath.ToSlash(name), file)
	}
	return nil
}

// cite collects the strings of a file that look like the number of a rule.
func (p *pkg) cite(name string, file *ast.File) {
	for node := range ast.Preorder(file) {
		literal, ok := node.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		if text, err := strconv.Unquote(literal.Value); err == nil && isNumber(text) {
			p.cited = append(p.cited, Citation{name, text})
		}
	}
}

func (p *pkg) declare(file *ast.File) {
	for node := range ast.Preorder(file) {
		switch node := node.(type) {
		case *ast.FuncDecl:
			if node.Recv == nil {
				p.functions[node.Name.Name] = node
			}
		case *ast.ValueSpec:
			for i, name := range node.Names {
				if i < len(node.Values) {
					p.constants[name.Name] = node.Values[i]
				}
			}
		}
	}
}

// text evaluates a string expression. known is false if that takes more than constants of the
// package.
func (p *pkg) text(expression ast.Expr) (text string, known bool) {
	switch e := expression.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil
	case *ast.Ident:
		value, declared := p.constants[e.Name]
		if !declared || value == expression {
			return "", false
		}
		return p.text(value)
	case *ast.BinaryExpr:
		left, leftKnown := p.text(e.X)
		right, rightKnown := p.text(e.Y)
		return left + right, leftKnown && rightKnown
	}
	return "", false
}
