// Command protoc-gen-go-actor is a plugin of protoc and buf. It generates typed actor code
// (*_actor.pb.go), which uses the message types of protoc-gen-go.
//
//	go install github.com/actorlock/actorlock/gen/protoc-gen-go-actor@latest
//	protoc --go_out=. --go-actor_out=. --go_opt=paths=source_relative --go-actor_opt=paths=source_relative counter.proto
//
// or, in buf.gen.yaml:
//
//	plugins:
//	  - {local: protoc-gen-go, out: ., opt: paths=source_relative}
//	  - {local: protoc-gen-go-actor, out: ., opt: paths=source_relative}
//
// The documentation of package emit describes the code. The options are those of protoc-gen-go.
// Command gen, in the folder above, does the work of both plugins without protoc and buf.
package main

import (
	"google.golang.org/protobuf/compiler/protogen"

	"github.com/actorlock/actorlock/gen/emit"
)

func main() { protogen.Options{}.Run(emit.Files) }
