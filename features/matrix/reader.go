package matrix

import (
	"go/ast"
	"slices"
	"strings"
)

// The functions of Ginkgo that make a spec; those that only mark one as pending are left out, because it does not run.
var (
	containers = []string{"Describe", "Context", "When"}
	leaves     = []string{"It", "Specify"}
	tables     = []string{"DescribeTable", "DescribeTableSubtree"}
)

// reader walks down from the containers of one file to its specs.
type reader struct {
	pack  *pack
	file  string
	specs []Spec
	calls []string // functions of the package that are being read
}

// read finds the nodes in a piece of source, also in functions of the package that it calls.
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
			r.called(name.Name, above)
			return true
		}
		return false
	})
}

func (r *reader) called(name string, above []Node) {
	function := r.pack.functions[name]
	if function == nil || function.Body == nil || slices.Contains(r.calls, name) {
		return
	}
	r.calls = append(r.calls, name)
	r.read(function.Body, above)
	r.calls = r.calls[:len(r.calls)-1]
}

// node is the text and the labels of a call to Ginkgo.
func (r *reader) node(call *ast.CallExpr) (n Node) {
	n.Text, _ = r.pack.text(call.Args[0])
	if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "When" {
		n.Text = "when " + n.Text
	}
	for _, argument := range call.Args {
		for _, label := range callTo("Label", argument) {
			if text, known := r.pack.text(label); known {
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

// revisions are the entries of the function of that name: those that it is given, or else all that it lists. Their texts are
// left out, because the matrix has a column for them.
func (r *reader) revisions(call *ast.CallExpr) (entries []Node) {
	listed := call.Args
	if len(listed) == 0 && r.pack.functions["revisions"] != nil {
		for node := range ast.Preorder(r.pack.functions["revisions"].Body) {
			if list, ok := node.(*ast.CompositeLit); ok {
				listed = list.Elts
			}
		}
	}
	for _, argument := range listed {
		if text, known := r.pack.text(argument); known {
			entries = append(entries, Node{Text: "…", Labels: []string{"MCP " + strings.TrimPrefix(text, "MCP ")}})
		}
	}
	return entries
}

// callTo returns the arguments of an expression that calls the function.
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
