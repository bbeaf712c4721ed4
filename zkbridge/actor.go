package zkbridge

import (
	"sync"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/epoch"
	"github.com/actorlock/actorlock/zkbridge/internal/generation"
	"github.com/actorlock/actorlock/zkbridge/internal/jobs"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
)

// bridgeActor is the actor. Only the goroutine that serves its mailbox changes its fields.
type bridgeActor struct {
	bridge       *connection
	cfg          *settings
	self         *host.Ref
	blockingJobs sync.WaitGroup // under way

	session       epoch.SessionMachine
	lastChange    *messages.SessionChanged // as last told to the subscribers
	epoch         *epoch.Epoch             // the present one; nil before the first, after the last, and in the pause between two
	epochsOpened  uint64
	lostAt        time.Time                // when a session was last lost
	wasReady      bool                     // a session was ready for requests: a refusal by a server is not fatal any more
	fatal         error                    // why the bridge has given up, nil if it has not
	failed        bool                     // the bridge has ended by a panic
	subs          map[ask.Recipient]uint64 // with the number of each subscription
	subscriptions uint64                   // so far
	timers        jobs.Timers              // beside those of the epoch

	newCreates   newCreates // creates that are to be opened in the present epoch
	rooms        rooms
	former       generation.Former
	lostSessions []*lostSession // that may live on at the servers
}

// lostSession is a session that the bridge has given up and that the servers may keep.
type lostSession struct {
	id       int64
	password []byte
	due      time.Time    // of the next attempt to close it
	closing  *epoch.Epoch // the epoch in which an attempt is queued or under way, nil for none
	attempts int          // the attempts that failed
}

// task is a message to the actor: a function that the actor calls.
type task func(*bridgeActor)

// handled is a message to the actor that is neither a requests.Waited, nor a writer.Group, nor one of service Bridge.
type handled interface{ handle(a *bridgeActor) }

func (t task) handle(a *bridgeActor) { t(a) }

// posted is a task that knows what it works on. As a message it takes no memory of its own.
type posted func()

func (f posted) handle(*bridgeActor) { f() }

// PostAhead implements epoch.Owner. As many requests may wait in the mailbox as a process has locks.
func (a *bridgeActor) PostAhead(f func()) { a.self.TellAhead(posted(f)) }

// outstanding returns how many requests wait for an answer.
func (a *bridgeActor) outstanding() int {
	if a.epoch == nil {
		return 0
	}
	return a.epoch.Open.Len() + a.newCreates.n
}

// replyTo returns where to send the answer to a message.
func (s *settings) replyTo(from ask.Recipient, msg requestMessage) reply.To {
	return reply.To{Recipient: from, ID: msg.GetId(), Epoch: msg.GetEpoch(), Log: s.Log}
}

// NoteTokens implements epoch.Owner.
func (a *bridgeActor) NoteTokens(missing error) {
	if missing == nil {
		a.bridge.noTokens.Store(nil)
	} else {
		a.bridge.noTokens.Store(&missing)
	}
}

// OnReady implements epoch.Owner.
func (a *bridgeActor) OnReady() {
	if !a.wasReady {
		a.wasReady = true
		close(a.bridge.ready)
	}
}

// WasReady implements epoch.Owner.
func (a *bridgeActor) WasReady() bool { return a.wasReady }

// IsConnected implements epoch.Owner.
func (a *bridgeActor) IsConnected() bool { return a.session.State == messages.SessionState_CONNECTED }

// NoteConnectError implements epoch.Owner.
func (a *bridgeActor) NoteConnectError(err error) { a.bridge.noteConnectError(err) }

// GiveUp implements epoch.Owner.
func (a *bridgeActor) GiveUp(err error) {
	a.fatal = err
	a.self.Stop()
}
