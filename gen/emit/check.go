package emit

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// checkNames returns an error for each service with a generated name that the Go package
// declares already, in any of its files.
func checkNames(gen *protogen.Plugin) (errs []error) {
	packages := declaredNames(gen)
	for _, file := range gen.Files {
		names := packages[file.GoImportPath]
		for _, service := range file.Services {
			if err := names.addService(service); err != nil && file.Generate {
				errs = append(errs, err)
			}
		}
	}
	return errs
}

// addService adds the generated names of a service. The error names the first that d has.
func (d declared) addService(s *protogen.Service) error {
	names := topLevelNames(s)
	for _, name := range names {
		if by, found := d[name]; found {
			return fmt.Errorf("%s: %s is the Go name of %s too; accepted is a service for which %s are free in its Go package",
				position(s.Desc), name, by, strings.Join(names, ", "))
		}
	}
	for _, name := range names {
		d[name] = "service " + string(s.Desc.FullName())
	}
	return nil
}

// checkRPCs returns an error for each rpc of a service for which there is no actor code.
func checkRPCs(s *protogen.Service) (errs []error) {
	var (
		rpcByRequest = map[protoreflect.FullName]string{}
		refNames     = map[string]string{"To": "its field"} // fields and methods of the reference
	)
	for _, m := range s.Methods {
		reject := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("%s: %s", position(m.Desc), fmt.Sprintf(format, args...)))
		}
		if m.Desc.IsStreamingClient() || m.Desc.IsStreamingServer() {
			reject("streams; accepted are rpcs of one message, answered by one message or, if one way, by %s", emptyMessage)
		}
		if by, found := rpcByRequest[m.Input.Desc.FullName()]; found {
			reject("takes %s as rpc %s does; accepted is one rpc per request type, since dispatch is by type", m.Input.Desc.FullName(), by)
		}
		rpcByRequest[m.Input.Desc.FullName()] = string(m.Desc.Name())
		for _, name := range []string{m.GoName, sendName(m)} {
			if by, found := refNames[name]; found {
				reject("%s.%s is taken by %s; accepted is an rpc X for which X and SendX are free", refName(s), name, by)
				break
			}
			refNames[name] = "rpc " + string(m.Desc.Name())
		}
	}
	return errs
}

// position returns the position of a service or rpc for an error: file:line:column and the
// names. Without source information it has no line and column.
func position(d protoreflect.Descriptor) string {
	file := d.ParentFile()
	text := file.Path()
	if at := file.SourceLocations().ByDescriptor(d); at.Path != nil {
		text = fmt.Sprintf("%s:%d:%d", text, at.StartLine+1, at.StartColumn+1)
	}
	if rpc, ok := d.(protoreflect.MethodDescriptor); ok {
		return fmt.Sprintf("%s: service %s, rpc %s", text, rpc.Parent().FullName(), rpc.Name())
	}
	return fmt.Sprintf("%s: service %s", text, d.FullName())
}
