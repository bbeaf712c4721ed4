// Command protoc-gen-go-actor is a plugin for protoc and buf: it writes typed
// actor code (*_actor.pb.go) beside the message types of protoc-gen-go.
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
// Package emit says what the code holds. The options are those of protoc-gen-go.
// Without protoc and buf, command gen (the folder above) does both plugins' work.
package main

import (
	"google.golang.org/protobuf/compiler/protogen"

	"github.com/actorlock/actorlock/gen/emit"
)

func main() { protogen.Options{}.Run(emit.Files) }
