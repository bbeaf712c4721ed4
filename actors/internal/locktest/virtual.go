package locktest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// Virtual is a Fixture in virtual time, with the controls of its server.
type Virtual struct {
	*Fixture
	*embedded.Server
}

// Bubble runs f in virtual time on an embedded server without a network. Its lock is at /lock.
func Bubble(t *testing.T, f func(v *Virtual)) {
	t.Helper()
	zktest.Bubble(t, func(t *testing.T) {
		s := zktest.Virtual(t)
		f(&Virtual{&Fixture{T: t, Server: s, LockPath: "/lock"}, s.Embedded()})
	})
}

// CutOff cuts the connections of all processes, until the returned function is called.
func (v *Virtual) CutOff() (restore func()) {
	away := v.Inject(embedded.Fault{Op: embedded.OpDial, Action: embedded.CutBefore, Times: -1})
	v.DropConnections()
	synctest.Wait()
	return away.Remove
}

// AwaitDeadLetters has the test wait until protoactor has counted the dead letters, which takes a
// second.
func (v *Virtual) AwaitDeadLetters() { v.Cleanup(func() { <-time.After(10 * time.Second) }) }
