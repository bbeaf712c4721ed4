package emit

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// checkNames finds services whose generated names another declaration of the same
// Go package has already, be it in another file.
func checkNames(gen *protogen.Plugin) (errs []error) {
	packages := names(gen)
	for _, file := range gen.Files {
		taken := packages[file.GoImportPath]
		for _, service := range file.Services {
			if err := take(taken, service); err != nil && file.Generate {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

func take(taken declared, s *protogen.Service) error {
	names := topLevelNames(s)
	for _, name := range names {
		if by, found := taken[name]; found {
			return fmt.Errorf("%s: %s is the Go name of %s too; accepted is a service for which %s are free in its Go package",
				where(s.Desc), name, by, strings.Join(names, ", "))
		}
	}
	for _, name := range names {
		taken[name] = "service " + string(s.Desc.FullName())
	}
	return nil
}

func checkRPCs(s *protogen.Service) (errs []error) {
	var (
		askedBy = map[protoreflect.FullName]string{}
		methods = map[string]string{"To": "its field"} // of the reference
	)
	for _, m := range s.Methods {
		refuse := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("%s: %s", where(m.Desc), fmt.Sprintf(format, args...)))
		}
		if m.Desc.IsStreamingClient() || m.Desc.IsStreamingServer() {
			refuse("streams; accepted are rpcs of one message, answered by one message or, if one way, by %s", emptyMessage)
		}
		if by, found := askedBy[m.Input.Desc.FullName()]; found {
			refuse("takes %s as rpc %s does; accepted is one rpc per request type, since dispatch is by type", m.Input.Desc.FullName(), by)
		}
		askedBy[m.Input.Desc.FullName()] = string(m.Desc.Name())
		for _, name := range []string{m.GoName, sendName(m)} {
			if by, found := methods[name]; found {
				refuse("%s.%s is taken by %s; accepted is an rpc X for which X and SendX are free", refName(s), name, by)
				break
			}
			methods[name] = "rpc " + string(m.Desc.Name())
		}
	}
	return errs
}

// where gives an error's place: file:line:column, if the descriptor knows its
// source, then service and rpc.
func where(d protoreflect.Descriptor) string {
	file := d.ParentFile()
	place := file.Path()
	if at := file.SourceLocations().ByDescriptor(d); at.Path != nil {
		place = fmt.Sprintf("%s:%d:%d", place, at.StartLine+1, at.StartColumn+1)
	}
	if rpc, ok := d.(protoreflect.MethodDescriptor); ok {
		return fmt.Sprintf("%s: service %s, rpc %s", place, rpc.Parent().FullName(), rpc.Name())
	}
	return fmt.Sprintf("%s: service %s", place, d.FullName())
}
