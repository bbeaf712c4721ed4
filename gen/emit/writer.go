package emit

import (
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/descriptorpb"
)

// writer is a Go file being written, with what keeps its names apart.
type writer struct {
	*protogen.GeneratedFile
	imported map[string]bool // names of the packages it imports
	context  string          // name of the context's type parameter
}

func newWriter(gen *protogen.Plugin, file *protogen.File) *writer {
	g := &writer{
		GeneratedFile: gen.NewGeneratedFile(file.GeneratedFilenamePrefix+Suffix, file.GoImportPath),
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
	for types := names(gen)[file.GoImportPath]; types[g.context] != "" || g.imported[g.context]; {
		g.context += "C" // a message or a package C would be hidden
	}
	return g
}

func (g *writer) imports(m *protogen.Message) {
	if name, _, qualified := strings.Cut(g.QualifiedGoIdent(m.GoIdent), "."); qualified {
		g.imported[name] = true
	}
}

// local gives a parameter a name that hides no package: a user's package may well
// be named msg.
func (g *writer) local(name string) string {
	for g.imported[name] {
		name += "_"
	}
	return name
}

// generic is the type parameter list of what depends on the context.
func (g *writer) generic() string { return "[" + g.context + " any]" }

// doc writes a doc comment: paragraphs without markers, empty ones left out.
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

// comment puts markers before the lines of a text. The space keeps a line such as
// "go:generate" from becoming a directive.
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

// text is the comment that belongs to a declaration: above it, or else behind it.
func text(c protogen.CommentSet) string {
	if c.Leading != "" {
		return strings.TrimRight(string(c.Leading), "\n")
	}
	return strings.TrimRight(string(c.Trailing), "\n")
}

// orElse is the comment, or a stand-in: every exported name is documented.
func orElse(comment, standIn string) string {
	if comment == "" {
		return standIn
	}
	return comment
}

// deprecation is what Go tools recognise a deprecated declaration by.
func deprecation(options interface{ GetDeprecated() bool }, of string) string {
	if !options.GetDeprecated() {
		return ""
	}
	return "Deprecated: " + of + " is marked as deprecated in its .proto file."
}

func serviceDeprecation(s *protogen.Service) string {
	return deprecation(s.Desc.Options().(*descriptorpb.ServiceOptions), "service "+string(s.Desc.Name()))
}

func rpcDeprecation(m *protogen.Method) string {
	return deprecation(m.Desc.Options().(*descriptorpb.MethodOptions), "rpc "+string(m.Desc.Name()))
}
