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

// product is every function of the product by its name, such as oauth.AccessGrant.End. Packages of
// the same name can have functions of the same name.
type product map[string][]function

// function is a function or method with a body.
type function struct {
	file       *file
	start, end int  // of the body between its braces, in the text of the file
	returns    bool // whether it has results
}

// file is a file of this platform's build.
type file struct {
	path        string // from the root of the module
	packageName string
	text        string
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

// addFile adds the functions of a file, unless it is for another platform.
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
	return p.addFunctions(filepath.ToSlash(path), string(text))
}

func (p product) addFunctions(path, text string) error {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	in := &file{path, parsed.Name.Name, text}
	for _, declaration := range parsed.Decls {
		if declared, is := declaration.(*ast.FuncDecl); is && declared.Body != nil {
			name := in.packageName + "." + functionName(declared)
			p[name] = append(p[name], function{
				file:    in,
				start:   files.PositionFor(declared.Body.Lbrace, false).Offset + 1,
				end:     files.PositionFor(declared.Body.Rbrace, false).Offset,
				returns: declared.Type.Results != nil,
			})
		}
	}
	return nil
}

// functionName returns the name of a function, or of a method after its type: Type.Method.
func functionName(declared *ast.FuncDecl) string {
	if declared.Recv == nil {
		return declared.Name.Name
	}
	receiver := declared.Recv.List[0].Type
	for {
		switch of := receiver.(type) {
		case *ast.StarExpr:
			receiver = of.X
		case *ast.IndexExpr: // the type has a type parameter
			receiver = of.X
		case *ast.IndexListExpr:
			receiver = of.X
		case *ast.Ident:
			return of.Name + "." + declared.Name.Name
		}
	}
}
