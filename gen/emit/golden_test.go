package emit_test

import (
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/compiler/protogen"

	"github.com/actorlock/actorlock/gen/emit"
	"github.com/actorlock/actorlock/gen/internal/protos"
)

var update = flag.Bool("update", false, "write what is emitted to the golden files")

// A case is a folder of testdata. Its .proto files are the input. Its *.golden files are the
// output: Go code, or error.golden if the input is not accepted.
func TestGolden(t *testing.T) {
	for _, dir := range cases(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			got := outputs(dir)
			if *update {
				write(t, dir, got)
			}
			want := golden(t, dir)
			if a, b := sortedNames(got), sortedNames(want); !slices.Equal(a, b) {
				t.Fatalf("emitted %v, golden are %v", a, b)
			}
			for name := range want {
				if got[name] != want[name] {
					t.Errorf("%s differs (-update accepts it); emitted:\n%s", name, got[name])
				}
			}
		})
	}
}

func cases(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatal("no cases", err)
	}
	return dirs
}

// outputs returns the golden files of a case by name.
func outputs(dir string) map[string]string {
	files, err := emitActors(dir)
	if err != nil {
		return map[string]string{"error.golden": err.Error() + "\n"}
	}
	return files
}

func emitActors(dir string) (map[string]string, error) {
	plugin, err := open(dir, dir)
	if err != nil {
		return nil, err
	}
	if err := emit.Files(plugin); err != nil {
		return nil, err
	}
	response := plugin.Response()
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	files := map[string]string{}
	for _, file := range response.File {
		files[file.GetName()+".golden"] = file.GetContent()
	}
	return files, nil
}

// open returns the plugin for the .proto files of a folder.
func open(root, dir string) (*protogen.Plugin, error) {
	roots := []protos.Root{{Dir: root}}
	names, err := protos.FileNames(roots, dir)
	if err != nil {
		return nil, err
	}
	req, err := protos.Request(roots, names)
	if err != nil {
		return nil, err
	}
	return protogen.Options{}.New(req)
}

func golden(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, path := range goldenPaths(t, dir) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = strings.ReplaceAll(string(content), "\r\n", "\n")
	}
	return files
}

func goldenPaths(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.golden"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for _, path := range goldenPaths(t, dir) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func sortedNames(files map[string]string) []string {
	return slices.Sorted(maps.Keys(files))
}

// An error has no line and column if the compiler has sent no source information.
func TestErrorWithoutPositions(t *testing.T) {
	roots := []protos.Root{{Dir: "testdata/bad_sametype"}}
	req, err := protos.Request(roots, []string{"sametype.proto"})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range req.ProtoFile {
		file.SourceCodeInfo = nil
	}
	plugin, err := protogen.Options{}.New(req)
	if err != nil {
		t.Fatal(err)
	}
	const want = "sametype.proto: service sametype.Twice, rpc Fetch: takes"
	if err := emit.Files(plugin); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error is %v, want %s...", err, want)
	}
}
