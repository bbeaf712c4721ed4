// Command gen generates Go code for the .proto files of a folder: message types (*.pb.go, by
// protoc-gen-go's own emitter) and typed actor code (*_actor.pb.go, by package emit). It needs
// no protoc and no network. In a Go file beside the .proto files write
//
//	//go:generate go tool github.com/actorlock/actorlock/gen .
//
// and call
//
//	go get -tool github.com/actorlock/actorlock/gen
//	go generate ./...
//
// The first command is needed once in a module. It adds the generator and its imports to go.mod
// and go.sum. Without it the generator fails with "missing go.sum entry".
//
//	gen [-out DIR] [-I [PREFIX=]DIR]... FOLDER
//
// It generates code for each .proto file in FOLDER. Each needs an option go_package. Flags:
//
//	-out DIR         the folder for the Go files (default FOLDER)
//	-I [PREFIX=]DIR  a folder in which to look up imports, as with protoc (default FOLDER);
//	                 may be repeated. With PREFIX, the files of DIR are named as if they
//	                 were in a folder PREFIX, in imports and in the registry of a Go program.
//	                 A program can hold only one file of a name, so that a library should
//	                 choose a PREFIX.
//
// A service such as
//
//	service Counter {
//	  rpc Add(AddRequest) returns (google.protobuf.Empty); // one way
//	  rpc Get(GetRequest) returns (GetResponse);
//	}
//
// becomes an interface that the actor implements, with any context type C,
//
//	type CounterHandler[C any] interface {
//		Add(ctx C, msg *AddRequest)
//		Get(ctx C, msg *GetRequest, reply ask.Reply[*GetResponse])
//	}
//
// a function DispatchCounter that calls its methods by message type, a type CounterRef that
// sends the messages and returns channel futures of the answers, and a function
// CounterMessages that returns one empty message of each request type. Get may answer at once
// or keep the reply for later; reply.Wanted reports whether the caller still waits. A handler
// that lacks an rpc does not compile. Not accepted are streams, and two rpcs of one service
// with the same request type.
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
		os.Exit(2) // the flag package has printed the error
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

// generate returns the contents of the Go files for a folder, by name.
func generate(cfg config) (map[string][]byte, error) {
	names, err := protos.FileNames(cfg.roots, cfg.folder)
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
