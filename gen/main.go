// Command gen writes Go code for the .proto files of a folder: message types
// (*.pb.go, by protoc-gen-go's own emitter) and typed actor code (*_actor.pb.go, by
// package emit). It needs no protoc and no network. In a Go file beside the .proto
// files write
//
//	//go:generate go tool github.com/actorlock/actorlock/gen .
//
// and call
//
//	go get -tool github.com/actorlock/actorlock/gen
//	go generate ./...
//
// The first of these, once in a module, lists the generator and all that it imports in
// go.mod and go.sum. Without it go run of the generator fails: "missing go.sum entry".
//
//	gen [-out DIR] [-I [PREFIX=]DIR]... FOLDER
//
// Every .proto file in FOLDER is generated; each needs an option go_package. Flags:
//
//	-out DIR         where the Go files go; FOLDER if not given
//	-I [PREFIX=]DIR  a folder in which imports are looked up, as with protoc; may be
//	                 repeated; FOLDER if not given. With PREFIX its files are named, in
//	                 imports and in the registry of a Go program, as if they lay in a
//	                 folder PREFIX. A program may hold only one file of a name, so
//	                 libraries do well to choose one.
//
// A service such as
//
//	service Counter {
//	  rpc Add(AddRequest) returns (google.protobuf.Empty); // one way
//	  rpc Get(GetRequest) returns (GetResponse);
//	}
//
// becomes an interface for the actor to implement, in any context type C,
//
//	type CounterHandler[C any] interface {
//		Add(ctx C, msg *AddRequest)
//		Get(ctx C, msg *GetRequest, reply ask.Reply[*GetResponse])
//	}
//
// a function DispatchCounter that calls its methods by message type, a CounterRef
// that sends the messages and makes channel futures of the answers, and a list
// CounterMessages. Get may answer at once or keep the reply for later; reply.Wanted
// reports whether the answer is still of use. A handler that lacks an rpc does not
// compile. Not accepted are streams and two rpcs of one service that take the same
// type.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"

	"github.com/actorlock/actorlock/gen/emit"
	"github.com/actorlock/actorlock/gen/internal/protos"
)

func main() {
	cfg, err := parse(os.Args[1:])
	if err != nil {
		os.Exit(2) // parse has said why
	}
	if err := run(cfg); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

type config struct {
	folder, out string
	roots       []protos.Root
}

func parse(args []string) (cfg config, err error) {
	flags := flag.NewFlagSet("gen", flag.ContinueOnError)
	flags.StringVar(&cfg.out, "out", "", "write the Go files to `DIR` (default FOLDER)")
	flags.Func("I", "look up imports in `[PREFIX=]DIR` (default FOLDER); may be repeated", func(s string) error {
		cfg.roots = append(cfg.roots, protos.ParseRoot(s))
		return nil
	})
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: gen [-out DIR] [-I [PREFIX=]DIR]... FOLDER")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return cfg, err
	}
	if flags.NArg() != 1 {
		flags.Usage()
		return cfg, errors.New("want one folder")
	}
	cfg.folder = flags.Arg(0)
	if cfg.out == "" {
		cfg.out = cfg.folder
	}
	if cfg.roots == nil {
		cfg.roots = []protos.Root{{Dir: cfg.folder}}
	}
	return cfg, nil
}

func run(cfg config) error {
	files, err := generate(cfg)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(cfg.out, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate gives the Go files for a folder by name, in memory.
func generate(cfg config) (map[string][]byte, error) {
	names, err := protos.Folder(cfg.roots, cfg.folder)
	if err != nil {
		return nil, err
	}
	req, err := protos.Request(cfg.roots, names)
	if err != nil {
		return nil, err
	}
	plugin, err := protogen.Options{}.New(req)
	if err != nil {
		return nil, err
	}
	if err := emit.Files(plugin); err != nil {
		return nil, err
	}
	emitMessages(plugin)
	return contents(plugin)
}

func emitMessages(plugin *protogen.Plugin) {
	for _, file := range plugin.Files {
		if file.Generate {
			internal_gengo.GenerateFile(plugin, file)
		}
	}
}

func contents(plugin *protogen.Plugin) (map[string][]byte, error) {
	response := plugin.Response()
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	files := map[string][]byte{}
	for _, file := range response.File {
		files[filepath.Base(file.GetName())] = []byte(file.GetContent())
	}
	return files, nil
}
