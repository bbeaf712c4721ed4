package emit

import "google.golang.org/protobuf/compiler/protogen"

const emptyMessage = "google.protobuf.Empty"

func handlerName(s *protogen.Service) string  { return s.GoName + "Handler" }
func ignoreName(s *protogen.Service) string   { return "Ignore" + s.GoName }
func dispatchName(s *protogen.Service) string { return "Dispatch" + s.GoName }
func refName(s *protogen.Service) string      { return s.GoName + "Ref" }
func messagesName(s *protogen.Service) string { return s.GoName + "Messages" }
func sendName(m *protogen.Method) string      { return "Send" + m.GoName }

func topLevelNames(s *protogen.Service) []string {
	return []string{handlerName(s), ignoreName(s), dispatchName(s), refName(s), messagesName(s)}
}

func oneWay(m *protogen.Method) bool { return m.Output.Desc.FullName() == emptyMessage }

// declared maps each name that a Go package declares to the proto element that it was
// generated from.
type declared map[string]string

// declaredNames returns the names that protoc-gen-go declares, by Go package.
func declaredNames(gen *protogen.Plugin) map[protogen.GoImportPath]declared {
	all := map[protogen.GoImportPath]declared{}
	for _, file := range gen.Files {
		if all[file.GoImportPath] == nil {
			all[file.GoImportPath] = declared{}
		}
		d := all[file.GoImportPath]
		d.addMessages(file.Messages)
		d.addEnums(file.Enums)
		d.addExtensions(file.Extensions)
	}
	return all
}

func (d declared) addMessages(messages []*protogen.Message) {
	for _, m := range messages {
		d[m.GoIdent.GoName] = "message " + string(m.Desc.FullName())
		for _, field := range m.Fields {
			if field.Oneof != nil && !field.Oneof.Desc.IsSynthetic() {
				d[field.GoIdent.GoName] = "oneof field " + string(field.Desc.FullName())
			}
		}
		d.addMessages(m.Messages)
		d.addEnums(m.Enums)
		d.addExtensions(m.Extensions)
	}
}

func (d declared) addEnums(enums []*protogen.Enum) {
	for _, e := range enums {
		d[e.GoIdent.GoName] = "enum " + string(e.Desc.FullName())
		for _, v := range e.Values {
			d[v.GoIdent.GoName] = "enum value " + string(v.Desc.FullName())
		}
	}
}

func (d declared) addExtensions(extensions []*protogen.Extension) {
	for _, x := range extensions {
		d[x.GoIdent.GoName] = "extension " + string(x.Desc.FullName())
	}
}
