package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var directive = regexp.MustCompile(`(?m)^//go:generate go run \S+ (.*)$`)

// The committed code is, to the byte, the output of go generate, and has no file of a removed
// .proto file or service.
func TestCommittedCodeIsCurrent(t *testing.T) {
	for _, folder := range []string{"../messages", "internal/counter"} {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Chdir(folder)
			cfg := configOf(t, "doc.go")
			want, err := generate(cfg)
			if err != nil {
				t.Fatal(err)
			}
			got := committed(t, cfg.out)
			if a, b := sortedNames(got), sortedNames(want); !slices.Equal(a, b) {
				t.Errorf("committed are %v, generated would be %v", a, b)
			}
			for name := range want {
				if !bytes.Equal(got[name], want[name]) {
					t.Errorf("%s/%s is stale: run go generate ./...", folder, name)
				}
			}
		})
	}
}

// configOf returns the flags of the file's go:generate line.
func configOf(t *testing.T, file string) config {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := directive.FindSubmatch(source)
	if found == nil {
		t.Fatalf("%s has no go:generate line", file)
	}
	cfg, err := parse(strings.Fields(string(found[1])))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func committed(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.pb.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func sortedNames(files map[string][]byte) []string {
	return slices.Sorted(maps.Keys(files))
}

func TestRunWritesToOut(t *testing.T) {
	out := t.TempDir()
	cfg, err := parse([]string{"-out", out, "-I", "some/where=internal/counter", "internal/counter"})
	if err != nil {
		t.Fatal(err)
	}
	if err := run(cfg); err != nil {
		t.Fatal(err)
	}
	code := committed(t, out)["counter_actor.pb.go"]
	if !bytes.Contains(code, []byte("// source: some/where/counter.proto\n")) {
		t.Errorf("the prefix is not in:\n%.200s", code)
	}
}

// The commands of the page for actor systems generate code in the module of a user.
func TestInModuleOfUser(t *testing.T) {
	const (
		get      = "go get -tool github.com/actorlock/actorlock/gen"
		generate = "go generate ./..."
		line     = "//go:generate go tool github.com/actorlock/actorlock/gen ."
	)
	page, err := os.ReadFile("../.github/ACTORS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{get, generate, line} {
		if !bytes.Contains(page, []byte("\n"+want)) {
			t.Errorf(".github/ACTORS.md has no line that begins with %q", want)
		}
	}
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", fmt.Sprintf("module example.com/user\n\ngo 1.26.0\n\nrequire github.com/actorlock/actorlock v0.0.0\n\n"+
		"replace github.com/actorlock/actorlock => %s\n", checkout))
	write("doc.go", "package user\n\n"+line+"\n")
	write("greeter.proto", "syntax = 'proto3'; option go_package = 'example.com/user';\n"+
		"message Hello {} message Hi {} service Greeter { rpc Greet(Hello) returns (Hi); }\n")
	for _, command := range []string{get, generate, "go vet ./..."} {
		args := strings.Fields(command)
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOSUMDB=off", "GOPROXY=file://"+downloads(t)+","+goEnv(t, "GOPROXY"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	if files := sortedNames(committed(t, dir)); !slices.Equal(files, []string{"greeter.pb.go", "greeter_actor.pb.go"}) {
		t.Errorf("generated are %v", files)
	}
}

// downloads returns the module cache as the address of a proxy. It has all modules that this module
// imports.
func downloads(t *testing.T) string {
	return filepath.ToSlash(filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download"))
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(value))
}

func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		proto string
		flags []string
		want  string
	}{
		"no files":      {"", nil, "no .proto files"},
		"syntax":        {"syntax = 'proto3';\nmessage {}", nil, "a.proto:2:9: syntax error"},
		"import":        {"syntax = 'proto3';\nimport 'gone.proto';", nil, "gone.proto"},
		"no go_package": {"syntax = 'proto3';", nil, "go_package"},
		"outside":       {"syntax = 'proto3';", []string{"-I", "internal"}, "in none of the import roots"},
		"service": {"syntax = 'proto3'; option go_package = 'example.com/p';\n" +
			"message M {}\nservice S { rpc R(stream M) returns (M); }", nil, "a.proto:3:13: service S, rpc R: streams"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tc.proto != "" {
				if err := os.WriteFile(filepath.Join(dir, "a.proto"), []byte(tc.proto), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cfg, err := parse(append(tc.flags, dir))
			if err != nil {
				t.Fatal(err)
			}
			if err := run(cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
			if files := committed(t, dir); len(files) > 0 {
				t.Errorf("wrote %v in spite of the error", sortedNames(files))
			}
		})
	}
}
