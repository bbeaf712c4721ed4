package emit_test

import (
	"encoding/json"
	"go/format"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"

	"github.com/actorlock/actorlock/gen/emit"
)

// The emitted code of every accepted case compiles together with protoc-gen-go's. go build
// reads the generated code of testdata from an overlay.
func TestGoldenCompiles(t *testing.T) {
	o := overlay{Replace: map[string]string{}, dir: t.TempDir()}
	var packages []string
	for _, dir := range goodCases(t) {
		for _, sub := range protoFolders(t, dir) {
			o.add(t, dir, sub)
			packages = append(packages, "./"+filepath.ToSlash(sub))
		}
	}
	args := append([]string{"build", "-overlay", o.file(t)}, packages...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Errorf("go build: %v\n%s", err, out)
	}
}

func TestGoldenIsFormatted(t *testing.T) {
	for _, dir := range goodCases(t) {
		for name, content := range golden(t, dir) {
			formatted, err := format.Source([]byte(content))
			if err != nil || string(formatted) != content {
				t.Errorf("%s/%s is not as gofmt leaves it (%v)", dir, name, err)
			}
		}
	}
}

func goodCases(t *testing.T) (dirs []string) {
	for _, dir := range cases(t) {
		if !strings.HasPrefix(filepath.Base(dir), "bad_") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// protoFolders returns the folders of a case that have .proto files.
func protoFolders(t *testing.T, root string) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			if found, _ := filepath.Glob(filepath.Join(path, "*.proto")); len(found) > 0 {
				dirs = append(dirs, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}

// overlay is the input of go build -overlay: it maps paths, which need not exist, to the files
// that replace them.
type overlay struct {
	Replace map[string]string
	dir     string
}

// add generates both kinds of code for the .proto files of a folder.
func (o overlay) add(t *testing.T, root, folder string) {
	t.Helper()
	plugin, err := open(root, folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := emit.Files(plugin); err != nil {
		t.Fatal(err)
	}
	for _, file := range plugin.Files {
		if file.Generate {
			internal_gengo.GenerateFile(plugin, file)
		}
	}
	for _, file := range plugin.Response().File {
		o.put(t, filepath.Join(root, filepath.FromSlash(file.GetName())), file.GetContent())
	}
}

func (o overlay) put(t *testing.T, path, content string) {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	o.Replace[path] = o.write(t, strings.ReplaceAll(path, string(filepath.Separator), "_"), []byte(content))
}

func (o overlay) file(t *testing.T) string {
	t.Helper()
	content, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return o.write(t, "overlay.json", content)
}

func (o overlay) write(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(o.dir, name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
