package actors

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// OPERATING.md has each line that the library logs from INFO on.
func TestLogLinesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../.github/OPERATING.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, root := range []string{".", "../zkbridge", "../gen/host"} {
		for _, line := range logLines(t, root) {
			found++
			if !strings.Contains(string(page), "`"+strings.TrimSpace(line)+"`") {
				t.Errorf("%s: .github/OPERATING.md has no line `%s`", root, line)
			}
		}
	}
	if found < 30 {
		t.Errorf("found %d log lines, which cannot be all", found)
	}
}

// logLines returns the texts that the production code below root passes to a logger.
func logLines(t *testing.T, root string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "embedded" || entry.Name() == "zktest" || entry.Name() == "simulation"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, declaration := range file.Decls {
			lines = append(lines, logLinesOf(declaration)...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// logLinesOf returns the texts that a declaration passes to a logger: a literal, the literal at the
// beginning of a sum, or all literals that the declaration assigns to a variable.
func logLinesOf(declaration ast.Decl) (lines []string) {
	variables := map[string]bool{}
	ast.Inspect(declaration, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !isLogger(method) {
			return true
		}
		text := call.Args[0]
		if sum, ok := text.(*ast.BinaryExpr); ok {
			text = sum.X
		}
		if name, ok := text.(*ast.Ident); ok {
			variables[name.Name] = true
		}
		lines = append(lines, literals(text)...)
		return true
	})
	ast.Inspect(declaration, func(n ast.Node) bool {
		if assign, ok := n.(*ast.AssignStmt); ok {
			if name, ok := assign.Lhs[0].(*ast.Ident); ok && variables[name.Name] {
				lines = append(lines, literals(assign.Rhs[0])...)
			}
		}
		return true
	})
	return lines
}

// isLogger reports whether a method is one of a logger: Info, Warn or Error of a variable or field
// whose name is log, Log or Logger.
func isLogger(method *ast.SelectorExpr) bool {
	switch method.Sel.Name {
	case "Info", "Warn", "Error":
	default:
		return false
	}
	switch x := method.X.(type) {
	case *ast.Ident:
		return x.Name == "log"
	case *ast.SelectorExpr:
		return x.Sel.Name == "Log" || x.Sel.Name == "Logger"
	}
	return false
}

func literals(x ast.Expr) []string {
	literal, ok := x.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return nil
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return nil
	}
	return []string{text}
}

// TESTING.md has service_test.go without a change.
func TestServiceTestIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../.github/TESTING.md")
	if err != nil {
		t.Fatal(err)
	}
	test, err := os.ReadFile("../zkbridge/embedded/service_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```go\n"+string(test)+"```\n") {
		t.Error(".github/TESTING.md does not have zkbridge/embedded/service_test.go as it is")
	}
}

// The glossary has at most 30 words.
func TestGlossaryIsShort(t *testing.T) {
	text, err := os.ReadFile("../.github/CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Glossary")
	rows := strings.Count(section, "\n| ") - 1 // without the head
	if rows < 20 || rows > 30 {
		t.Errorf("%d words", rows)
	}
}

// Each name of a type belongs to two packages at most, tests included.
func TestTypeNamesAreRare(t *testing.T) {
	packages := map[string]map[string]bool{} // by the name of a type
	err := filepath.WalkDir("..", func(path string, file fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".pb.go") {
			return err
		}
		code, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range code.Decls {
			types, ok := d.(*ast.GenDecl)
			if !ok || types.Tok != token.TYPE {
				continue
			}
			for _, spec := range types.Specs {
				name := spec.(*ast.TypeSpec).Name.Name
				if packages[name] == nil {
					packages[name] = map[string]bool{}
				}
				packages[name][filepath.Dir(path)] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range packages {
		if len(in) > 2 {
			t.Errorf("type %s is in %q", name, slices.Sorted(maps.Keys(in)))
		}
	}
	if len(packages) < 500 {
		t.Errorf("%d types", len(packages))
	}
}

// The files and headings that the project's pages link to exist, and so do the Go files that they name.
func TestLinks(t *testing.T) {
	link, goFile := regexp.MustCompile(`\]\(([^)\s]+)\)`), regexp.MustCompile(`\b[a-z0-9_]+\.go(?:\.dev)?\b`)
	goFiles := map[string]bool{}
	walkModule(t, ".go", func(path string) { goFiles[filepath.Base(path)] = true })
	walkModule(t, ".md", func(page string) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range link.FindAllStringSubmatch(string(text), -1) {
			file, heading, _ := strings.Cut(found[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if heading != "" && !slices.Contains(headings(t, target), heading) {
				t.Errorf("%s links to %s, which is no heading", page, found[1])
			}
		}
		for _, name := range goFile.FindAllString(string(text), -1) {
			if !goFiles[name] && name != "pkg.go.dev" {
				t.Errorf("%s: there is no file %s", page, name)
			}
		}
	})
}

// walkModule calls f with each file of the module whose name has the extension.
func walkModule(t *testing.T, extension string, f func(path string)) {
	t.Helper()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == extension {
			f(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The exported names of packages that the pages name exist.
func TestNamesOfPages(t *testing.T) {
	name := regexp.MustCompile(`\b(actors|remote|zkbridge|embedded|zktest|queue|ask|host)\.([A-Z]\w+)`)
	folders := map[string]string{"actors": ".", "remote": "remote", "zkbridge": "../zkbridge", "embedded": "../zkbridge/embedded",
		"zktest": "../zkbridge/zktest", "queue": "queue", "ask": "../gen/ask", "host": "../gen/host"}
	declared := map[string]map[string]bool{}
	for name, folder := range folders {
		declared[name] = exported(t, folder)
	}
	named := 0
	walkModule(t, ".md", func(page string) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range name.FindAllStringSubmatch(string(text), -1) {
			if named++; !declared[m[1]][m[2]] && !strings.HasPrefix(m[2], "Test") && !strings.HasPrefix(m[2], "Fuzz") {
				t.Errorf("%s: there is no %s", page, m[0])
			}
		}
	})
	if named < 100 {
		t.Errorf("found %d names, which cannot be all", named)
	}
}

// exported returns the names that the package in a folder declares outside of functions.
func exported(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					names[d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						names[s.Name.Name] = true
					case *ast.ValueSpec:
						for _, n := range s.Names {
							names[n.Name] = true
						}
					}
				}
			}
		}
	}
	return names
}

// headings returns the anchors of the headings of a page.
func headings(t *testing.T, page string) (anchors []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if title, found := strings.CutPrefix(line, "#"); found {
			anchors = append(anchors, strings.ReplaceAll(strings.ToLower(strings.TrimSpace(strings.TrimLeft(title, "#"))), " ", "-"))
		}
	}
	return anchors
}

// A comment that names a file of this module names one that exists; the comment on a package, one of
// its own.
func TestFilesOfComments(t *testing.T) {
	comment, file := regexp.MustCompile(`//.*`), regexp.MustCompile(`(?:^|[^\w/.-])([a-z0-9][a-z0-9_]*\.go)\b`)
	folders, all := map[string][]string{}, map[string]bool{}
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".go" {
			folders[filepath.Dir(path)] = append(folders[filepath.Dir(path)], entry.Name())
			all[entry.Name()] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for folder, names := range folders {
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(folder, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range comment.FindAllString(string(text), -1) {
				for _, m := range file.FindAllStringSubmatch(line, -1) {
					if named++; !all[m[1]] || name == "doc.go" && !slices.Contains(names, m[1]) {
						t.Errorf("%s: there is no file %s", filepath.Join(folder, name), m[1])
					}
				}
			}
		}
	}
	if named < 100 {
		t.Errorf("found the names of %d files, which cannot be all", named)
	}
}
