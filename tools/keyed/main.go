// Command keyed reports literals of structs with three fields or more that do not name their
// fields: two values of the same type that are exchanged would compile. The rows of a table, whose
// literals leave the type out, are allowed. It is not a tool for go vet, which would run it on all
// libraries too.
package main

import (
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/singlechecker"
)

const minFields = 3

func main() {
	singlechecker.Main(&analysis.Analyzer{
		Name: "keyed", Doc: "report literals of structs with three fields or more that do not name their fields", Run: check,
	})
}

func check(pass *analysis.Pass) (any, error) {
	for _, file := range pass.Files {
		for node := range ast.Preorder(file) {
			literal, ok := node.(*ast.CompositeLit)
			if !ok || literal.Type == nil || len(literal.Elts) < minFields {
				continue
			}
			_, named := literal.Elts[0].(*ast.KeyValueExpr)
			_, isStruct := pass.TypesInfo.TypeOf(literal).Underlying().(*types.Struct)
			if isStruct && !named {
				pass.Reportf(literal.Pos(), "name the fields of this literal")
			}
		}
	}
	return nil, nil
}
