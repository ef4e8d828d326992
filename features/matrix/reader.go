package matrix

import (
	"go/ast"
	"slices"
	"strings"
)

// The functions of Ginkgo that make specs. Pending specs do not run, so PIt and the like are not
// among them.
var (
	containers = []string{"Describe", "Context", "When"}
	leaves     = []string{"It", "Specify"}
	tables     = []string{"DescribeTable", "DescribeTableSubtree"}
)

// reader collects the specs of one file.
type reader struct {
	pkg   *pkg
	file  string
	specs []Spec
	calls []string // functions that are being read, so that a recursive function ends
}

// read collects the specs in a piece of source, also in the functions of its package that it calls.
// above are the containers around it.
func (r *reader) read(source ast.Node, above []Node) {
	ast.Inspect(source, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		name, ok := call.Fun.(*ast.Ident)
		if !ok {
			return true
		}
		switch {
		case slices.Contains(containers, name.Name):
			r.container(call, append(slices.Clip(above), r.node(call)))
		case slices.Contains(leaves, name.Name):
			r.specs = append(r.specs, Spec{r.file, append(slices.Clip(above), r.node(call))})
		case slices.Contains(tables, name.Name):
			r.table(call, append(slices.Clip(above), r.node(call)))
		default:
			r.readFunction(name.Name, above)
			return true
		}
		return false
	})
}

func (r *reader) readFunction(name string, above []Node) {
	function := r.pkg.functions[name]
	if function == nil || function.Body == nil || slices.Contains(r.calls, name) {
		return
	}
	r.calls = append(r.calls, name)
	r.read(function.Body, above)
	r.calls = r.calls[:len(r.calls)-1]
}

// node returns the text and the labels of a call to Ginkgo.
func (r *reader) node(call *ast.CallExpr) (n Node) {
	n.Text, _ = r.pkg.text(call.Args[0])
	if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "When" {
		n.Text = "when " + n.Text
	}
	for _, argument := range call.Args {
		for _, label := range callTo("Label", argument) {
			if text, known := r.pkg.text(label); known {
				n.Labels = append(n.Labels, text)
			}
		}
	}
	return n
}

func (r *reader) container(call *ast.CallExpr, above []Node) {
	for _, argument := range call.Args {
		if body, ok := argument.(*ast.FuncLit); ok {
			r.read(body.Body, above)
		}
	}
}

// table makes a spec of each entry, or reads the subtree under each.
func (r *reader) table(call *ast.CallExpr, above []Node) {
	for _, argument := range call.Args {
		for _, entry := range r.entries(argument) {
			path := append(slices.Clip(above), entry)
			if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "DescribeTableSubtree" {
				r.container(call, path)
				continue
			}
			r.specs = append(r.specs, Spec{r.file, path})
		}
	}
}

func (r *reader) entries(argument ast.Expr) []Node {
	call, ok := argument.(*ast.CallExpr)
	if !ok {
		return nil
	}
	name, ok := call.Fun.(*ast.Ident)
	switch {
	case !ok:
		return nil
	case name.Name == "Entry":
		return []Node{r.node(call)}
	case name.Name == "revisions":
		return r.revisions(call)
	}
	return nil
}

// revisions returns the entries that a call of the function "revisions" makes: one for each
// argument, or for everything that it lists. Each has "…" for its text, because the page has a
// column for the revisions.
func (r *reader) revisions(call *ast.CallExpr) (entries []Node) {
	listed := call.Args
	if len(listed) == 0 && r.pkg.functions["revisions"] != nil {
		for node := range ast.Preorder(r.pkg.functions["revisions"].Body) {
			if list, ok := node.(*ast.CompositeLit); ok {
				listed = list.Elts
			}
		}
	}
	for _, argument := range listed {
		if text, known := r.pkg.text(argument); known {
			entries = append(entries, Node{Text: "…", Labels: []string{"MCP " + strings.TrimPrefix(text, "MCP ")}})
		}
	}
	return entries
}

// callTo returns the arguments of the expression if it calls the function.
func callTo(function string, expression ast.Expr) []ast.Expr {
	call, ok := expression.(*ast.CallExpr)
	if !ok {
		return nil
	}
	if name, ok := call.Fun.(*ast.Ident); !ok || name.Name != function {
		return nil
	}
	return call.Args
}
