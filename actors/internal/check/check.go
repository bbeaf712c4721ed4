// Package check says what is wrong with what a program passes in.
package check

import (
	"fmt"
	"strings"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// ErrNilContext is INVALID, for a context that is nil.
var ErrNilContext = Invalid(ask.ErrNilContext.Error())

// Invalid returns an error with the reason INVALID.
func Invalid(detail string) error {
	return &messages.Refused{Reason: messages.Reason_INVALID, Detail: detail}
}

// Path returns an error if no lock can be at the path.
func Path(path string) error {
	return pathOf("lock", path, `it must name a directory below the root, as in "/locks/orders"`)
}

// CountPath returns an error if no count can be at the path.
func CountPath(path string) error {
	return pathOf("count", path, "it must name a node below the root")
}

func pathOf(what, path, notRoot string) error {
	if path == "/" {
		return Invalid(what + ` path "/": ` + notRoot)
	}
	if err := zkpath.Check(path); err != nil {
		return Invalid(what + " " + err.Error())
	}
	return Reserved(what, path)
}

// Reserved returns an error for the directories where the library and ZooKeeper keep their own nodes.
// Those of ZooKeeper have no czxid, as if they did not exist.
func Reserved(what, path string) error {
	within := func(directory string) bool { return path == directory || strings.HasPrefix(path, directory+"/") }
	own := zkbridge.GenerationDirectory
	switch {
	case within("/zookeeper"):
		return Invalid(fmt.Sprintf("%s path %q: it must be outside /zookeeper, which is ZooKeeper's own", what, path))
	case !within(own):
		return nil
	}
	return Invalid(fmt.Sprintf("%s path %q: it must be outside %s, where the library keeps the generation of tokens and a node of each session",
		what, path, own))
}
