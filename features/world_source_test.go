package features_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/pasteport/pasteport/features/matrix"
)

const module = "github.com/pasteport/pasteport/"

// source is the parsed content of a Go file.
type source struct {
	file    string // relative to the module's root
	clause  string // the name of its package
	comment bool   // has a package comment
	imports []string
	uses    []string // imported names, such as "time.Now"
	calls   []string // unqualified calls, such as those of a dot import
}

func (s source) isTest() bool { return strings.HasSuffix(s.file, "_test.go") }

// sources parses every Go file of the module in the folder, and of the given nested modules.
func sources(root string, modules ...string) (found []source) {
	GinkgoHelper()
	for _, top := range append([]string{root}, modules...) {
		Expect(filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && name != top && matrix.Foreign(name):
				return filepath.SkipDir
			case entry.IsDir() || filepath.Ext(name) != ".go":
				return nil
			}
			file, err := readSource(root, name)
			found = append(found, file)
			return err
		})).To(Succeed())
	}
	return found
}

func readSource(root, name string) (source, error) {
	tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		return source{}, fmt.Errorf("parsing: %w", err)
	}
	relative, err := filepath.Rel(root, name)
	if err != nil {
		return source{}, fmt.Errorf("naming %s: %w", name, err)
	}
	s := source{file: filepath.ToSlash(relative), clause: tree.Name.Name, comment: tree.Doc.Text() != ""}
	called := map[string]string{}
	for _, spec := range tree.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return source{}, fmt.Errorf("reading an import of %s: %w", name, err)
		}
		s.imports = append(s.imports, strings.TrimPrefix(imported, module))
		called[path.Base(imported)] = imported
		if spec.Name != nil {
			called[spec.Name.Name] = imported
		}
	}
	s.uses, s.calls = usesOf(tree, called), callsIn(tree)
	return s, nil
}

func usesOf(tree *ast.File, called map[string]string) (uses []string) {
	for node := range ast.Preorder(tree) {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			continue
		}
		if from, ok := selector.X.(*ast.Ident); ok && called[from.Name] != "" {
			uses = append(uses, called[from.Name]+"."+selector.Sel.Name)
		}
	}
	return uses
}

func callsIn(tree *ast.File) (calls []string) {
	for node := range ast.Preorder(tree) {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			continue
		}
		if name, ok := call.Fun.(*ast.Ident); ok {
			calls = append(calls, name.Name)
		}
	}
	return calls
}
