// Package fileorder has tests check that the files of a package can be read in one order.
package fileorder

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Check checks the package whose test calls it: the section "Files" in its doc.go names all of its other
// files, and a file uses only what stands in files that were named before it.
func Check(t *testing.T) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") || name == "doc.go" })
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		files = append(files, parse(t, fset, name))
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	check := types.Config{Importer: emptyPackages{}, Error: func(error) {}}
	pkg, _ := check.Check("checked", fset, files, &info) // fails, as other packages are empty
	order := listed(parse(t, fset, "doc.go").Doc.Text())
	if all := slices.Sorted(slices.Values(order)); !slices.Equal(all, names) {
		t.Errorf("doc.go lists %q, the files are %q", all, names)
	}
	n := 0
	for id, of := range info.Uses {
		if of.Pkg() != pkg || !isDeclaration(of) {
			continue
		}
		n++
		in, from := fset.Position(id.Pos()).Filename, fset.Position(of.Pos()).Filename
		if slices.Index(order, in) < slices.Index(order, from) {
			t.Errorf("%s uses %s of %s, which comes later", in, id.Name, from)
		}
	}
	if n < 500 {
		t.Errorf("only %d uses are known", n)
	}
}

func parse(t *testing.T, fset *token.FileSet, name string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// listed returns the files that the section "Files" names, in the order in which each is named first.
func listed(doc string) (order []string) {
	_, section, _ := strings.Cut(doc, "# Files")
	for _, name := range regexp.MustCompile(`\w+\.go`).FindAllString(section, -1) {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	return order
}

// isDeclaration reports whether an object of the package is more than a field or a local variable.
func isDeclaration(of types.Object) bool {
	f, isFunc := of.(*types.Func)
	return of.Parent() == of.Pkg().Scope() || isFunc && f.Signature().Recv() != nil
}

// emptyPackages are the packages that the checked one imports, without what is in them: to read them takes
// seconds.
type emptyPackages struct{}

func (emptyPackages) Import(of string) (*types.Package, error) {
	p := types.NewPackage(of, path.Base(of))
	p.MarkComplete()
	return p, nil
}
