package emit

import (
	"cmp"
	"fmt"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// writer writes one Go file.
type writer struct {
	*protogen.GeneratedFile
	imported map[string]bool // names of the packages that the file imports for messages
	context  string          // name of the context's type parameter, different from all others
}

func newWriter(gen *protogen.Plugin, file *protogen.File) *writer {
	g := &writer{
		GeneratedFile: gen.NewGeneratedFile(file.GeneratedFilenamePrefix+suffix, file.GoImportPath),
		imported:      map[string]bool{},
		context:       "C",
	}
	for _, service := range file.Services {
		for _, m := range service.Methods {
			g.imports(m.Input)
			if !oneWay(m) {
				g.imports(m.Output)
			}
		}
	}
	for types := declaredNames(gen)[file.GoImportPath]; types[g.context] != "" || g.imported[g.context]; {
		g.context += "C" // otherwise it would hide a message or a package C
	}
	return g
}

func (g *writer) imports(m *protogen.Message) {
	if name, _, qualified := strings.Cut(g.QualifiedGoIdent(m.GoIdent), "."); qualified {
		g.imported[name] = true
	}
}

// local returns a name for a parameter that hides no imported package, which may be named msg.
func (g *writer) local(name string) string {
	for g.imported[name] {
		name += "_"
	}
	return name
}

// generic returns the type parameter list of a declaration that depends on the context.
func (g *writer) generic() string { return "[" + g.context + " any]" }

// doc writes a doc comment of the paragraphs that are not empty.
func (g *writer) doc(paragraphs ...string) {
	separator := ""
	for _, p := range paragraphs {
		if p == "" {
			continue
		}
		g.P(separator, comment(p))
		separator = "//\n"
	}
}

// comment returns the text as a comment. The space after each marker prevents that a line such
// as "go:generate" becomes a directive.
func comment(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimRight(line, " \t\r")
		if line != "" && line[0] != ' ' && line[0] != '\t' {
			line = " " + line
		}
		lines[i] = "//" + line
	}
	return strings.Join(lines, "\n")
}

// text returns the comment of a declaration: the one above it, or else the one behind it.
func text(c protogen.CommentSet) string {
	return strings.TrimRight(string(cmp.Or(c.Leading, c.Trailing)), "\n")
}

// deprecation returns the paragraph by which Go tools recognise a deprecated declaration, or
// "" if it is not deprecated.
func deprecation(kind string, d protoreflect.Descriptor) string {
	if !d.Options().(interface{ GetDeprecated() bool }).GetDeprecated() {
		return ""
	}
	return fmt.Sprintf("Deprecated: %s %s is marked as deprecated in its .proto file.", kind, d.Name())
}

func serviceDeprecation(s *protogen.Service) string { return deprecation("service", s.Desc) }

func rpcDeprecation(m *protogen.Method) string { return deprecation("rpc", m.Desc) }
