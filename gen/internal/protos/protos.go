// Package protos compiles .proto files, in process and offline, into the request that protoc or
// buf would send to a plugin.
package protos

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// Request compiles the named files, which it looks up below the roots, and their imports. The
// well-known imports (google/protobuf/...) are built in.
func Request(roots []Root, names []string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(resolver(roots)),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), names...)
	if err != nil {
		return nil, err
	}
	var sorted dependencyOrder
	for _, file := range files {
		sorted.add(file)
	}
	return marshalled(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: names,
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      sorted.files,
	})
}

// FileNames returns the names of the .proto files in a folder, as imports would write them.
func FileNames(roots []Root, dir string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.proto"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no .proto files", dir)
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		if names[i], err = nameOf(roots, p); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// A Root is a folder in which to look up imports, as if its files were below Prefix.
type Root struct{ Prefix, Dir string }

// ParseRoot parses protoc's form of an import root: DIR or PREFIX=DIR.
func ParseRoot(s string) Root {
	if prefix, dir, found := strings.Cut(s, "="); found {
		return Root{Prefix: path.Clean(filepath.ToSlash(prefix)), Dir: dir}
	}
	return Root{Dir: s}
}

func nameOf(roots []Root, file string) (string, error) {
	for _, root := range roots {
		rel, err := relative(root.Dir, file)
		if err == nil && filepath.IsLocal(rel) {
			return path.Join(root.Prefix, filepath.ToSlash(rel)), nil
		}
	}
	return "", fmt.Errorf("%s: in none of the import roots", file)
}

func relative(dir, file string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if file, err = filepath.Abs(file); err != nil {
		return "", err
	}
	return filepath.Rel(dir, file)
}

func resolver(roots []Root) protocompile.ResolverFunc {
	return func(name string) (protocompile.SearchResult, error) {
		for _, root := range roots {
			rest, found := cutPrefix(root.Prefix, name)
			if !found {
				continue
			}
			f, err := os.Open(filepath.Join(root.Dir, filepath.FromSlash(rest)))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			return protocompile.SearchResult{Source: f}, err
		}
		return protocompile.SearchResult{}, fs.ErrNotExist
	}
}

func cutPrefix(prefix, name string) (string, bool) {
	if prefix == "" {
		return name, true
	}
	return strings.CutPrefix(name, prefix+"/")
}

// dependencyOrder lists files in the order that plugins expect: each after its imports.
type dependencyOrder struct {
	files []*descriptorpb.FileDescriptorProto
	seen  map[string]bool
}

func (o *dependencyOrder) add(file protoreflect.FileDescriptor) {
	if o.seen[file.Path()] {
		return
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[file.Path()] = true
	for i := range file.Imports().Len() {
		o.add(file.Imports().Get(i).FileDescriptor)
	}
	o.files = append(o.files, protoutil.ProtoFromFileDescriptor(file))
}

// marshalled returns the request as a plugin reads it. The compiler's own copy holds options as
// dynamic messages, which emitters do not accept.
func marshalled(req *pluginpb.CodeGeneratorRequest) (*pluginpb.CodeGeneratorRequest, error) {
	wire, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	read := new(pluginpb.CodeGeneratorRequest)
	return read, proto.Unmarshal(wire, read)
}
