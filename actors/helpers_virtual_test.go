package actors_test

import (
	"testing"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// virtual is a testLock in virtual time, with the controls of its server.
type virtual struct {
	*testLock
	*embedded.Server
}

// bubble runs f in virtual time on an embedded server without a network. Its lock is at /lock.
func bubble(t *testing.T, f func(v *virtual)) {
	t.Helper()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		f(&virtual{&testLock{T: t, Server: s, path: "/lock"}, s.Embedded()})
	})
}
