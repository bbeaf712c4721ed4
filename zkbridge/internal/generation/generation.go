// Package generation has the generation of tokens: the node that holds it, and when tokens would go back.
package generation

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Path is the node, below the chroot, whose data is the generation as decimal text, and Directory is its
// directory. A missing node means generation 0.
const (
	Path      = Directory + "/generation"
	Directory = "/actorlock"
)

// Parse returns the generation in the node's data. The error is INVALID and names the
// data unless that is a decimal number from 0 to 2^64-1.
func Parse(data []byte) (uint64, error) {
	value, err := strconv.ParseUint(string(data), 10, 64)
	if err != nil {
		if len(data) > 40 {
			data = append(data[:40:40], "..."...)
		}
		return 0, fmt.Errorf("zkbridge: %w: %s: data %q: it must be a decimal number from 0 to %d",
			messages.Reason_INVALID, Path, data, uint64(math.MaxUint64))
	}
	return value, nil
}

// Next returns the generation above one: the present Unix time in seconds, or one more if
// the generation is not below that. The error is INVALID if the generation is the greatest.
func Next(was uint64) (uint64, error) {
	if was == math.MaxUint64 {
		return 0, fmt.Errorf("zkbridge: %w: generation %d: it is the greatest, and cannot be raised", messages.Reason_INVALID, was)
	}
	return max(was+1, uint64(max(time.Now().Unix(), 0))), nil
}

// Write returns the operation that writes the node unless it has changed since it was read: whether it
// exists, with which version. A node that it creates has the ACL, and may be read by all.
func Write(value uint64, exists bool, version int32, acl []zk.ACL) zkconn.Op {
	data := strconv.AppendUint(nil, value, 10)
	if exists {
		return zkconn.Op{Kind: zkconn.OpSet, Path: Path, Data: data, Version: version}
	}
	return zkconn.Op{Kind: zkconn.OpCreate, Path: Path, Data: data, ACL: zkconn.WithPublicRead(acl)}
}
