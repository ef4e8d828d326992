package main

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// productFolders contain the code that mutations change.
var productFolders = []string{"domain", "application", "adapters", "bootstrap"}

// product is every declaration of the product by its name, such as oauth.AccessGrant.End. Packages
// of the same name can declare the same name.
type product map[string][]declaration

// declaration is a function, a method, or one name of a const, var or type declaration.
type declaration struct {
	file       *file
	start, end int // in the text of the file
}

// file is a file of this platform's build.
type file struct {
	path string // from the root of the module
	text string
}

// readProduct reads the product of the module whose root is given.
func readProduct(root string) (product, error) {
	found := product{}
	for _, folder := range productFolders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
				return err
			}
			return found.addFile(root, name)
		})
		if err != nil {
			return nil, fmt.Errorf("reading the product: %w", err)
		}
	}
	return found, nil
}

// addFile adds the declarations of a file, unless it is for another platform.
func (p product) addFile(root, name string) error {
	matches, err := build.Default.MatchFile(filepath.Split(name))
	if err != nil || !matches {
		return err
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	path, err := filepath.Rel(root, name)
	if err != nil {
		return err
	}
	return p.addDeclarations(&file{filepath.ToSlash(path), string(text)})
}

func (p product) addDeclarations(in *file) error {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, in.path, in.text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	add := func(name string, node ast.Node) {
		name = parsed.Name.Name + "." + name
		start, end := files.Position(node.Pos()).Offset, files.Position(node.End()).Offset
		p[name] = append(p[name], declaration{in, start, end})
	}
	for _, declared := range parsed.Decls {
		switch declared := declared.(type) {
		case *ast.FuncDecl:
			add(functionName(declared), declared)
		case *ast.GenDecl:
			addSpecs(declared, add)
		}
	}
	return nil
}

func addSpecs(declared *ast.GenDecl, add func(string, ast.Node)) {
	for _, spec := range declared.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			add(spec.Name.Name, spec)
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				add(name.Name, spec)
			}
		}
	}
}

// functionName returns the name of a function, or of a method after its type: Type.Method.
func functionName(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	receiver := function.Recv.List[0].Type
	for {
		switch of := receiver.(type) {
		case *ast.StarExpr:
			receiver = of.X
		case *ast.IndexExpr: // the type has a type parameter
			receiver = of.X
		case *ast.IndexListExpr:
			receiver = of.X
		case *ast.Ident:
			return of.Name + "." + function.Name.Name
		}
	}
}
