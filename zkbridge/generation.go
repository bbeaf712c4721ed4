package zkbridge

import (
	"context"

	"github.com/actorlock/actorlock/zkbridge/internal/generation"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// GenerationPath is the node, below the chroot, whose data is the generation as decimal
// text, and GenerationDirectory is its directory. A missing node means generation 0.
const (
	GenerationPath      = generation.Path
	GenerationDirectory = generation.Directory
)

// Generation returns the generation by its node: 0 without one. The error is INVALID and names the
// data unless that is a decimal number from 0 to 2^64-1.
func (n NodeView) Generation() (uint64, error) {
	if !n.Exists {
		return 0, nil
	}
	return generation.Parse(n.Data)
}

// NextGeneration returns the generation above one: the present Unix time in seconds, or one more if
// the generation is not below that. The error is INVALID if the generation is the greatest.
func (b *internals) NextGeneration(was uint64) (uint64, error) { return generation.Next(was) }

// WriteGeneration writes the generation's node unless it has changed since it was read as n: then the
// error has zk.ErrBadVersion, zk.ErrNodeExists or zk.ErrNoNode. It creates a missing node, and the
// missing nodes above it, with the ACL of [Config] and the right to READ for all. Otherwise it is as Internals.Multi.
func (b *internals) WriteGeneration(ctx context.Context, n NodeView, value uint64) error {
	op := generation.Write(value, n.Exists, n.Stat.Version, b.cfg.ACL)
	_, err := b.execute(ctx, b.Session().Epoch, GenerationDirectory, func() ([]zkconn.Op, error) { return []zkconn.Op{op}, nil })
	return err
}
