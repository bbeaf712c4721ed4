package actors

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The functions that the README names for a first reading exist in the files that it links, and have as few
// lines of code as it says: those of an Acquire, and of its wait, its release and its loss.
func TestReadingIsShort(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Reading the code")
	section, _, _ = strings.Cut(section, "\nWhy it is right")
	acquire, more, _ := strings.Cut(section, "\nA wait, ")
	wait, more, _ := strings.Cut(more, "\nA release, ")
	release, loss, found := strings.Cut(more, "\nA loss, ")
	if !found {
		t.Fatal("the README names no functions for a wait, a release and a loss")
	}
	link, name := regexp.MustCompile(`\]\(([^)\s]+\.go)\)`), regexp.MustCompile("`([A-Za-z.]+)`")
	for _, walk := range []struct {
		text           string
		functions, max int
	}{{acquire, 33, 440}, {wait, 10, 140}, {release, 8, 130}, {loss, 9, 130}} {
		functions, code, comments := 0, 0, 0
		files := link.FindAllStringSubmatchIndex(walk.text, -1)
		for i, at := range files {
			end := len(walk.text)
			if i+1 < len(files) {
				end = files[i+1][0]
			}
			file := walk.text[at[2]:at[3]]
			of := functionsOf(t, "../"+file)
			for _, named := range name.FindAllStringSubmatch(walk.text[at[1]:end], -1) {
				source, is := of[named[1]]
				if !is {
					t.Errorf("%s has no function %s, or several", file, named[1])
				}
				functions++
				for line := range strings.Lines(source) {
					switch line = strings.TrimSpace(line); {
					case strings.HasPrefix(line, "//"):
						comments++
					case line != "":
						code++
					}
				}
			}
		}
		if code > walk.max || functions < walk.functions || !strings.Contains(walk.text, fmt.Sprintf("%d lines", walk.max)) {
			t.Errorf("%d functions with %d lines of code, want %d functions or more with at most %d, as the text says", functions, code, walk.functions, walk.max)
		}
		t.Logf("%d functions, %d lines of code, %d of comments", functions, code, comments)
	}
}

// functionsOf returns the functions of a file as their source, by name and by type and name. A name that
// several types have is not in it.
func functionsOf(t *testing.T, file string) map[string]string {
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	functions, several := map[string]string{}, map[string]bool{}
	for _, d := range parsed.Decls {
		f, is := d.(*ast.FuncDecl)
		if !is {
			continue
		}
		from := f.Pos()
		if f.Doc != nil {
			from = f.Doc.Pos()
		}
		text := string(source[files.Position(from).Offset:files.Position(f.End()).Offset])
		_, known := functions[f.Name.Name]
		several[f.Name.Name] = several[f.Name.Name] || known
		functions[f.Name.Name] = text
		if f.Recv != nil {
			functions[strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*")+"."+f.Name.Name] = text
		}
	}
	maps.DeleteFunc(functions, func(name, _ string) bool { return several[name] })
	return functions
}
