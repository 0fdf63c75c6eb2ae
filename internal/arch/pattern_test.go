package arch

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPatternsCompile compiles what pattern.Lazy will, wherever it is called: a bad
// expression is found here and not by the person who first needs it.
func TestPatternsCompile(t *testing.T) {
	t.Parallel()
	found := 0
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		known := constantsOf(file)
		ast.Inspect(file, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := c.Fun.(*ast.SelectorExpr); !ok || s.Sel.Name != "Lazy" || types.ExprString(s.X) != "pattern" {
				return true
			}
			found++
			value, err := types.Eval(token.NewFileSet(), known, token.NoPos, types.ExprString(c.Args[0]))
			if err != nil || value.Value == nil {
				t.Errorf("%s: the argument of pattern.Lazy is no literal text: %v", path, err)
				return true
			}
			if _, err := regexp.Compile(constant.StringVal(value.Value)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			return true
		})
		return nil
	})
	if err != nil || found < 50 {
		t.Fatalf("%d patterns were found: %v", found, err)
	}
}

// constantsOf returns a package with the file's constants that are literal texts.
func constantsOf(file *ast.File) *types.Package {
	known := types.NewPackage("p", "p")
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range v.Values {
			if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text := constant.MakeFromLiteral(lit.Value, lit.Kind, 0)
				known.Scope().Insert(types.NewConst(token.NoPos, known, v.Names[i].Name, types.Typ[types.UntypedString], text))
			}
		}
		return true
	})
	return known
}
