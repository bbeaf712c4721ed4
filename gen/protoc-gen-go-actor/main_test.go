package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/pluginpb"

	"github.com/actorlock/actorlock/gen/emit"
	"github.com/actorlock/actorlock/gen/internal/protos"
)

// asPlugin is the environment variable that makes the test binary run as the plugin.
const asPlugin = "PROTOC_GEN_GO_ACTOR_TEST"

func TestMain(m *testing.M) {
	if os.Getenv(asPlugin) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The plugin, run as protoc runs it, returns the same code and errors as package emit.
func TestPluginAgreesWithEmit(t *testing.T) {
	cases, err := filepath.Glob("../emit/testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range append(cases, "../../messages", "../internal/counter") {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			req := request(t, dir)
			got, want := runPlugin(t, req), inProcess(t, req)
			if !proto.Equal(got, want) {
				t.Errorf("the plugin returns\n%v\nemit returns\n%v", got, want)
			}
			if dir == "../../messages" {
				equalsFiles(t, dir, got)
			}
		})
	}
}

func equalsFiles(t *testing.T, dir string, response *pluginpb.CodeGeneratorResponse) {
	t.Helper()
	for _, file := range response.File {
		want, err := os.ReadFile(filepath.Join(dir, filepath.Base(file.GetName())))
		if err != nil || file.GetContent() != string(want) {
			t.Errorf("%s is not what is committed (%v)", file.GetName(), err)
		}
	}
}

func request(t *testing.T, dir string) *pluginpb.CodeGeneratorRequest {
	t.Helper()
	root := protos.Root{Dir: dir}
	if filepath.Base(dir) == "messages" {
		root.Prefix = "actorlock" // as in its go:generate line
	}
	roots := []protos.Root{root}
	names, err := protos.FileNames(roots, dir)
	if err != nil {
		t.Fatal(err)
	}
	req, err := protos.Request(roots, names)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func runPlugin(t *testing.T, req *pluginpb.CodeGeneratorRequest) *pluginpb.CodeGeneratorResponse {
	t.Helper()
	in, err := proto.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asPlugin+"=1", "GORACE=atexit_sleep_ms=0")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	response := new(pluginpb.CodeGeneratorResponse)
	if err := proto.Unmarshal(out, response); err != nil {
		t.Fatal(err)
	}
	return response
}

func inProcess(t *testing.T, req *pluginpb.CodeGeneratorRequest) *pluginpb.CodeGeneratorResponse {
	t.Helper()
	plugin, err := protogen.Options{}.New(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := emit.Files(plugin); err != nil {
		plugin.Error(err)
	}
	return plugin.Response()
}
