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

// pack is a package that writes specs: what of it can be evaluated without building it.
type pack struct {
	files     map[string]*ast.File // by path from the module's root
	constants map[string]ast.Expr
	functions map[string]*ast.FuncDecl
}

// readSpecs finds every spec in the module, file by file in the order of their names.
func readSpecs(root string) (specs []Spec, err error) {
	packs, err := readPacks(root)
	if err != nil {
		return nil, err
	}
	for _, p := range packs {
		for name, file := range p.files {
			r := reader{pack: p, file: name}
			for _, decl := range file.Decls {
				if variable, ok := decl.(*ast.GenDecl); ok && variable.Tok == token.VAR {
					r.read(variable, nil)
				}
			}
			specs = append(specs, r.specs...)
		}
	}
	slices.SortStableFunc(specs, func(a, b Spec) int { return strings.Compare(a.File, b.File) })
	return specs, nil
}

func readPacks(root string) (map[string]*pack, error) {
	packs := map[string]*pack{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && Foreign(path):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		return addFile(packs, root, path)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the specs: %w", err)
	}
	return packs, nil
}

// Foreign tells the folders that Go leaves out too.
func Foreign(dir string) bool {
	base := filepath.Base(dir)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func addFile(packs map[string]*pack, root, path string) error {
	name, err := filepath.Rel(root, path)
	if err != nil {
		return fmt.Errorf("naming %s: %w", path, err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing: %w", err)
	}
	writesSpecs := slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == ginkgo })
	key := filepath.Dir(name) + ":" + file.Name.Name
	if packs[key] == nil {
		packs[key] = &pack{files: map[string]*ast.File{}, constants: map[string]ast.Expr{}, functions: map[string]*ast.FuncDecl{}}
	}
	if writesSpecs {
		packs[key].files[filepath.ToSlash(name)] = file
	}
	packs[key].declare(file)
	return nil
}

func (p *pack) declare(file *ast.File) {
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

// text evaluates a string; known is false for what only a run could tell.
func (p *pack) text(expression ast.Expr) (text string, known bool) {
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
		left, knowsLeft := p.text(e.X)
		right, knowsRight := p.text(e.Y)
		return left + right, knowsLeft && knowsRight
	}
	return "", false
}
