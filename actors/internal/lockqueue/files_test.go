package lockqueue

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

// The list of files in doc.go is complete, and a file uses only what stands before it there. So the
// package can be read in that order.
func TestOrderOfFiles(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") || name == "doc.go" })
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	check := types.Config{Importer: emptyPackages{}, Error: func(error) {}}
	pkg, _ := check.Check("lockqueue", fset, files, &info) // fails, as other packages are empty
	doc, err := parser.ParseFile(fset, "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(doc.Doc.Text(), "# Files")
	list, _, _ := strings.Cut(section, "One request on its way")
	order := regexp.MustCompile(`\w+\.go`).FindAllString(list, -1)
	if listed := slices.Sorted(slices.Values(order)); !slices.Equal(listed, names) {
		t.Errorf("doc.go lists %q, the files are %q", listed, names)
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

// isDeclaration reports whether an object of the package is more than a field or a local variable.
func isDeclaration(of types.Object) bool {
	f, isFunc := of.(*types.Func)
	return of.Parent() == of.Pkg().Scope() || isFunc && f.Signature().Recv() != nil
}

// emptyPackages are the packages that this one imports, without what is in them: to read them takes
// seconds.
type emptyPackages struct{}

func (emptyPackages) Import(of string) (*types.Package, error) {
	p := types.NewPackage(of, path.Base(of))
	p.MarkComplete()
	return p, nil
}
