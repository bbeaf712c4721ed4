package manager

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A manager without actors keeps nothing for a tick that does not come.
func TestAtNextTickWithoutActors(t *testing.T) {
	for name, m := range map[string]*Manager{"before the first actor": {}, "behind the last tick": {ticks: time.AfterFunc(time.Hour, func() {})}} {
		if m.ticks != nil {
			m.tickEntries()
		}
		kept := weak.Make(addAtNextTick(m))
		zktest.Eventually(t, zktest.TimeLimit, func() bool {
			runtime.GC()
			return kept.Value() == nil
		}, name)
		runtime.KeepAlive(m)
	}
}

// addAtNextTick returns what the function for the next tick refers to.
func addAtNextTick(m *Manager) *[1 << 10]byte {
	data := new([1 << 10]byte)
	m.AtNextTick(func() { clear(data[:]) })
	return data
}
