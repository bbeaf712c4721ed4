package recipes

import (
	"encoding/binary"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/messages"
)

// The node of a shared count is compatible with Curator's SharedCount: its data are four bytes, the
// highest first.

// CreateCount returns the message that creates the node at path. The bridge makes a missing
// directory of it, and a missing chroot.
func CreateCount(epoch uint64, path string, data []byte) *messages.Transact {
	directory, _ := check.SplitPath(path)
	return &messages.Transact{Epoch: epoch, Directory: directory, Ops: []*messages.Op{{Kind: messages.Op_CREATE, Path: path, Data: data}}}
}

// CountData returns the data of a count.
func CountData(value int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(int32(value))) }

// ParseCount returns the value of a count's data.
func ParseCount(path string, data []byte) (int, error) {
	if len(data) != 4 {
		return 0, check.Invalid(fmt.Sprintf("count %s: its data are %d bytes, and must be 4", path, len(data)))
	}
	return int(int32(binary.BigEndian.Uint32(data))), nil
}
