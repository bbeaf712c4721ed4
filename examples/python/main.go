// Command python writes messages.binpb, the descriptors of messages/remote.proto and its imports,
// from which client.py makes its message classes without protoc. client.py is the example: a Python
// program that holds a lock of a lock server.
//
//	apt-get install python3-grpcio python3-protobuf
//	go run ./examples/lockd -zk zk1:2181 -listen 127.0.0.1:7400 -insecure
//	/usr/bin/python3 examples/python/client.py 127.0.0.1:7400 /locks/backup
//
// go generate runs the command.
package main

import (
	"log"
	"os"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/actorlock/actorlock/messages"
)

//go:generate go run .

const file = "messages.binpb"

func main() {
	text, err := descriptors()
	if err == nil {
		err = os.WriteFile(file, text, 0o644)
	}
	if err != nil {
		log.Fatal("python: ", err)
	}
}

// descriptors returns the descriptors of remote.proto, behind those of its imports.
func descriptors() ([]byte, error) {
	set := &descriptorpb.FileDescriptorSet{}
	added := map[string]bool{}
	var add func(f protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if added[f.Path()] {
			return
		}
		added[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	add(messages.File_actorlock_remote_proto)
	return proto.MarshalOptions{Deterministic: true}.Marshal(set)
}
