package recipes

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/shell"
	"github.com/actorlock/actorlock/messages"
)

// The node of a shared count is compatible with Curator's SharedCount: its data are four bytes, the
// highest first.

// CreateCountOps returns the operations that create the node at path, and the nodes above it,
// depth nodes at most.
func CreateCountOps(path string, data []byte, depth int) []*messages.Op {
	ops := []*messages.Op{{Kind: messages.Op_CREATE, Path: path, Data: data}}
	for i := strings.LastIndexByte(path, '/'); i > 0 && len(ops) < depth; i = strings.LastIndexByte(path[:i], '/') {
		ops = append([]*messages.Op{{Kind: messages.Op_CREATE, Path: path[:i]}}, ops...)
	}
	return ops
}

// CountData returns the data of a count.
func CountData(value int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(int32(value))) }

// ParseCount returns the value of a count's data.
func ParseCount(path string, data []byte) (int, error) {
	if len(data) != 4 {
		return 0, shell.Invalid(fmt.Sprintf("count %s: its data are %d bytes, and must be 4", path, len(data)))
	}
	return int(int32(binary.BigEndian.Uint32(data))), nil
}
