// Command python writes the descriptors of messages/remote.proto and its imports into actorlock.py,
// which makes its message classes from them without protoc. actorlock.py is a client of lock servers
// for Python, in one file; client.py holds a lock with it.
//
//	apt-get install python3-grpcio python3-protobuf    # or: pip install examples/python
//	go run ./examples/lockd -zk zk1:2181 -listen 127.0.0.1:7400 -insecure
//	/usr/bin/python3 examples/python/client.py 127.0.0.1:7400 /locks/backup
//
// go generate runs the command.
package main

import (
	"encoding/base64"
	"errors"
	"log"
	"os"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/actorlock/actorlock/messages"
)

//go:generate go run .

const file = "actorlock.py"

func main() {
	text, err := os.ReadFile(file)
	var fresh string
	if err == nil {
		fresh, err = withDescriptors(string(text))
	}
	if err == nil {
		err = os.WriteFile(file, []byte(fresh), 0o644)
	}
	if err != nil {
		log.Fatal("python: ", err)
	}
}

// withDescriptors returns the text of actorlock.py with the present descriptors.
func withDescriptors(text string) (string, error) {
	before, rest, found := strings.Cut(text, "\n_MESSAGES = \"\"\"\n")
	_, behind, ends := strings.Cut(rest, "\"\"\"\n")
	if !found || !ends {
		return "", errors.New(file + " has no _MESSAGES to replace")
	}
	set, err := descriptors()
	if err != nil {
		return "", err
	}
	const width = 136
	lines := ""
	for code := base64.StdEncoding.EncodeToString(set); code != ""; {
		n := min(width, len(code))
		lines += code[:n] + "\n"
		code = code[n:]
	}
	return before + "\n_MESSAGES = \"\"\"\n" + lines + "\"\"\"\n" + behind, nil
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
