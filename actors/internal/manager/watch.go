package manager

import (
	"fmt"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
)

// endWatcher is an actor that hears of the end of another one.
type endWatcher struct{ ended func() }

// endWatchers numbers the watchers of this process.
var endWatchers atomic.Uint64

// OnEnd calls ended once an actor of the program has ended, or at once if it has ended before. stop
// ends that.
func (m *Manager) OnEnd(of *actor.PID, ended func()) (stop func()) {
	self := m.system.Start(fmt.Sprintf("%s/watcher%d", m.name, endWatchers.Add(1)), func(*host.Ref) host.Actor { return endWatcher{ended} })
	who, isActor := host.IdentityOf(host.Sender{System: m.system.Actors, PID: of})
	if isActor {
		self.Watch(who) // Watch fails for a name that another actor had; this one is new
	}
	return func() {
		if isActor {
			self.Unwatch(who)
		}
		self.Stop()
	}
}

// Receive implements host.Actor.
func (w endWatcher) Receive(_ ask.Recipient, msg any) {
	if _, is := msg.(host.Terminated); is {
		w.ended()
	}
}

// Stopped implements host.Actor.
func (endWatcher) Stopped(any) {}

// Refuse implements host.Actor.
func (endWatcher) Refuse(ask.Recipient, any) {}
