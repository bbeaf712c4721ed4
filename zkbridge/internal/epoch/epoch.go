// Package epoch is all that the bridge does within one ZooKeeper session. An [Epoch] runs in the bridge's
// actor, which the [Owner] stands for.
//
// The files, in reading order:
//
//   - state.go: the states of a session, and what changes them.
//   - epoch.go: what an epoch needs of the actor, and the way of its requests.
//   - sessionnode.go, generation.go: how an epoch gets ready for requests: the session node is made, and
//     the generation is read, and raised if history was lost.
//   - leadercheck.go: what the epoch does when servers disagree.
package epoch

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/generation"
	"github.com/actorlock/actorlock/zkbridge/internal/jobs"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/requests"
	"github.com/actorlock/actorlock/zkbridge/internal/watches"
	"github.com/actorlock/actorlock/zkbridge/internal/writer"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// Owner is what an epoch needs of the actor. Only PostAhead and NoteConnectError may be called on
// another goroutine.
type Owner interface {
	// PostAhead has the actor call f, before it handles the requests that wait in its mailbox.
	PostAhead(f func())
	// IsConnected reports whether the session is CONNECTED.
	IsConnected() bool
	// OnSessionEvent handles an event of the epoch's session.
	OnSessionEvent(e SessionEvent, detail string)
	// OnAuthRefused handles that a server refuses the credentials, or wants others.
	OnAuthRefused(err error)
	// NoteTokens notes why there are no tokens, nil if there are.
	NoteTokens(missing error)
	// OnReady notes that requests can go.
	OnReady()
	// WasReady reports whether a session was ready for requests.
	WasReady() bool
	// GiveUp ends the bridge for good.
	GiveUp(err error)
	// NoteConnectError keeps the error of an attempt to connect.
	NoteConnectError(err error)
}

// Setup is what an epoch works with.
type Setup struct {
	*zkconn.Settings
	Former   generation.Former
	Answers  *uint64         // counts the answers to requests
	Blocking *sync.WaitGroup // of the goroutines that wait
	OnBatch  func(operations int)
}

// Epoch is all that the bridge does within one session. When the session is over the bridge drops
// the epoch as a whole, so that nothing of it can run in the next session.
type Epoch struct {
	Number uint64
	Conn   *zkconn.SessionConn
	Writer *writer.Writer
	Open   reply.Open // requests that are not answered
	Ready  bool       // the session has a session node if it may, and noGeneration is decided; see createSessionNode

	owner  Owner
	cfg    Setup
	client zkconn.Client
	over   bool

	jobs      *jobs.Kinds
	watches   watches.Table
	nodeReads requests.NodeReads

	rejoining     *zkconn.Established // the new connection, as long as the generation is not read over it; nil for none
	misreads      int                 // reads of the generation in a row whose answer does not say what there is
	begun         bool                // the session's first transaction is answered: each connection begins with a read of the generation
	firstZxid     int64               // of that transaction
	noGeneration  error               // why there are no tokens, nil if there are: then the generation is writer.Generation
	generationDue bool                // a timer is set until the generation's node is read again
	raising       bool                // a write of that node is under way
	awaitingReady []func()            // to be called when the session is ready

	retries  []func() // to be called when the session is connected again, or after a pause
	retryDue bool     // the timer of that pause is set
	timers   jobs.Timers
	jitter   zkconn.Jitter
}

// RetryPause is how long the bridge waits before it tries something again while the connection
// seems to be up.
const RetryPause = 100 * time.Millisecond

// HasWork reports whether a job, or the writer, has something to send.
func (ep *Epoch) HasWork() bool {
	return ep.jobs.Start.HasWork() || ep.Ready && (ep.Writer.Changed() || slices.ContainsFunc(ep.jobs.Ready(), (*jobs.Jobs).HasWork))
}

// Open opens the session of an epoch with its number.
func Open(owner Owner, cfg Setup, number uint64) *Epoch {
	ep := &Epoch{Number: number, owner: owner, cfg: cfg, noGeneration: errGenerationUnread, watches: watches.Table{Epoch: number, Log: cfg.Log}}
	ep.timers = jobs.NewTimers(ep.Post)
	ep.Conn = zkconn.Open(number, cfg.Settings, func(event any) { ep.Post(func() { ep.onConnEvent(event) }) }, owner.NoteConnectError)
	ep.client = zkconn.NewClient(ep.Conn)
	ep.jitter = zkconn.NewJitter() // after the connection has drawn its own, so that seeds of the simulation keep their histories
	ep.jobs = jobs.NewKinds(writer.MaxSingle, cfg.Blocking, owner.PostAhead)
	ep.Writer = writer.New(ep, writer.Dependencies{Settings: cfg.Settings, Session: ep.Conn, OnBatch: cfg.OnBatch})
	return ep
}

// onConnEvent handles an event of the epoch's connections.
func (ep *Epoch) onConnEvent(event any) {
	switch event := event.(type) {
	case zkconn.NodeChanged:
		if event.Path == generation.Path { // first: no later answer may carry the old generation
			ep.onGenerationChanged()
		}
		ep.Writer.OnChanged(event.Path)
		ep.watches.OnEvent(event.Path, event.Deleted)
	case zkconn.Established:
		ep.join(event)
	case zkconn.Disconnected:
		ep.leave()
		ep.owner.OnSessionEvent(Disconnected, event.Detail)
	case zkconn.Expired:
		ep.leave()
		ep.owner.OnSessionEvent(Expired, event.Detail)
	case zkconn.AuthRefused:
		ep.owner.OnAuthRefused(event.Err)
	}
}

// join has requests go over a new connection. It sets the watches of the last connection again before
// any request is sent: ZooKeeper sends the events that were missed since the last zxid that this
// process has seen, and the answer to a request would raise that zxid. It reads the generation before
// any request is sent, too.
func (ep *Epoch) join(event zkconn.Established) {
	nodes, directories := ep.watches.Paths()
	ep.client.SetWatches(event.Conn, nodes, directories)
	if ep.rejoining = &event; ep.begun {
		ep.readGenerationOver(event.Conn)
		return
	}
	ep.joined()
}

// joined has the session go on over the connection that it has joined.
func (ep *Epoch) joined() {
	if event := ep.rejoining; event != nil {
		ep.rejoining = nil
		ep.Use(event.Conn)
		ep.owner.OnSessionEvent(Established, event.Detail)
	}
}

// leave has no request go over a connection.
func (ep *Epoch) leave() {
	ep.rejoining = nil
	ep.Use(nil)
}

// Use has requests go over a connection, nil for none.
func (ep *Epoch) Use(conn *zkconn.Conn) {
	ep.Writer.OnConnection()
	ep.Conn.Use(conn)
}

// Unwatch takes back the writer's watch on a directory itself, which would stay for as long
// as the directory and the connection. (A container goes when it is idle, and its watch with it.)
func (ep *Epoch) Unwatch(path string) {
	if !ep.Writer.Unwatch(path) {
		return
	}
	ep.jobs.Surveys.Add(func(end func(func())) { // no caller waits for it
		done := func() { end(func() {}) }
		if ep.Writer.IsWatched(path) || ep.watches.Has(path) || path == generation.Path { // the server has one watch for all
			done()
			return
		}
		ep.client.RemoveWatch(path, done)
	})
}

// End ends the epoch. It answers all requests that are open.
func (ep *Epoch) End(why messages.Reason, detail string) {
	ep.over = true
	ep.jobs.End()
	ep.timers.End()
	ep.leave()
	*ep.cfg.Answers += uint64(ep.Open.Len())
	for _, r := range ep.Open.InOrder() {
		r.Fail(why, detail)
	}
	ep.Open = reply.Open{}
}

// Create has the writer create contenders, which were added, when the session is ready, or answers why they
// have no token.
func (ep *Epoch) Create(g *writer.Group) {
	switch {
	case !ep.Ready:
		ep.WhenReady(func() { ep.Create(g) })
	case ep.noGeneration != nil:
		ep.Writer.Fail(g, requests.ReasonOf(ep.noGeneration), ep.noGeneration)
	default:
		ep.Writer.Create(g)
	}
}

// WhenReady calls f when the session is ready for requests, at once if it is.
func (ep *Epoch) WhenReady(f func()) {
	if ep.Ready {
		f()
		return
	}
	ep.awaitingReady = append(ep.awaitingReady, f)
}

// Close implements requests.InEpoch.
func (ep *Epoch) Close(r reply.Request) {
	ep.Open.Remove(r)
	*ep.cfg.Answers++
}

// Answer implements writer.Epoch.
func (ep *Epoch) Answer(r reply.Sender, msg any) {
	ep.Close(r)
	r.Tell(msg)
}

// Fail implements writer.Epoch.
func (ep *Epoch) Fail(r reply.Request, why messages.Reason, format string, args ...any) {
	ep.Close(r)
	r.Fail(why, fmt.Sprintf(format, args...))
}

// Resume goes on with all that waits for a connection.
func (ep *Epoch) Resume() {
	retries := ep.retries
	ep.retries = nil
	for _, f := range retries {
		f()
	}
}

// The epoch is the Epoch of its parts.
var _ requests.InEpoch = (*Epoch)(nil)

// Client implements writer.Epoch.
func (ep *Epoch) Client() zkconn.Client { return ep.client }

// SetClient has requests go over another client, for tests.
func (ep *Epoch) SetClient(c zkconn.Client) { ep.client = c }

// Jobs implements requests.InEpoch.
func (ep *Epoch) Jobs() *jobs.Kinds { return ep.jobs }

// Watches implements requests.InEpoch.
func (ep *Epoch) Watches() *watches.Table { return &ep.watches }

// NodeReads implements requests.InEpoch.
func (ep *Epoch) NodeReads() *requests.NodeReads { return &ep.nodeReads }

// IsOpen implements writer.Epoch.
func (ep *Epoch) IsOpen(r reply.Request) bool { return ep.Open.Has(r) }

// Run implements writer.Epoch.
func (ep *Epoch) Run(work func(client zkconn.Client) (then func())) {
	ep.jobs.Singles.AddBlocking(func() func() { return work(ep.client) })
}

// Post implements writer.Epoch.
func (ep *Epoch) Post(f func()) {
	ep.owner.PostAhead(func() {
		if !ep.over {
			f()
		}
	})
}

// AfterFunc implements writer.Epoch.
func (ep *Epoch) AfterFunc(d time.Duration, f func()) (stop func()) { return ep.timers.After(d, f) }

// EndSession implements writer.Epoch.
func (ep *Epoch) EndSession(path string, err error) {
	ep.cfg.Log.Error("a node may have been made that cannot be looked for: the session ends, because nothing else deletes it", "node", path,
		"why", err, "epoch", ep.Number, "do", "grant READ on the lock's directory and its nodes, or upgrade the servers to ZooKeeper 3.6 or later")
	ep.owner.OnSessionEvent(GivenUp, fmt.Sprintf("%s may have been made and cannot be looked for: %v", path, err))
}

// RetryAfter implements writer.Epoch.
func (ep *Epoch) RetryAfter(pause time.Duration, f func()) {
	if pause == 0 {
		ep.RetryLater(f)
		return
	}
	ep.AfterFunc(pause, func() { ep.RetryLater(f) })
}

// RetryLater implements writer.Epoch.
func (ep *Epoch) RetryLater(f func()) {
	ep.retries = append(ep.retries, f)
	if !ep.owner.IsConnected() || ep.retryDue {
		return
	}
	ep.retryDue = true
	ep.AfterFunc(RetryPause, func() {
		ep.retryDue = false
		if ep.owner.IsConnected() {
			ep.Resume()
		}
	})
}
