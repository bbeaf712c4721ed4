package locktest

import (
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// OnChroot runs f on both servers. The path of the Fixture is a chroot that does not exist yet. So
// it has a generation of its own.
func OnChroot(t *testing.T, f func(b *Fixture)) {
	t.Helper()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		f(&Fixture{T: t, Server: s, LockPath: s.Path(t) + "/app"})
	})
}

// Chroot returns Locks with the lock's path as chroot.
func (b *Fixture) Chroot(configure ...func(*actors.Config)) *actors.Locks {
	b.Helper()
	return Connect(b.T, b.Addr()+b.LockPath, configure...)
}

// Generation returns the generation.
func (b *Fixture) Generation(locks *actors.Locks) uint64 {
	b.Helper()
	g, err := locks.Generation(Within(b))
	Must(b, err)
	return g
}

// RaiseGeneration raises the generation, and returns the new one.
func (b *Fixture) RaiseGeneration(locks *actors.Locks) uint64 {
	b.Helper()
	g, err := locks.RaiseGeneration(Within(b))
	Must(b, err)
	return g
}

// SetGeneration writes any data into the node, as an operator may.
func (b *Fixture) SetGeneration(text string) {
	b.Helper()
	_, err := b.Client(b).Set(b.LockPath+zkbridge.GenerationPath, []byte(text), -1)
	Must(b, err)
}
