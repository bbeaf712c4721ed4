package recipes

import (
	"context"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// elsewhere is a request of an owner in another process.
type elsewhere struct {
	of      *manager.Entry
	owner   string
	id      requests.ID
	answers chan any
}

func (e *elsewhere) Tell(msg any)                              { e.answers <- msg }
func (e *elsewhere) OnGranted(msg *messages.Granted, _ uint32) { e.answers <- msg }
func (e *elsewhere) RequestID() *requests.ID                   { return &e.id }
func (e *elsewhere) Owner() string                             { return e.owner }
func (*elsewhere) Context() context.Context                    { return context.Background() }
func (*elsewhere) IsElsewhere() bool                           { return true }
func (*elsewhere) ArmLeakDetection(time.Time)                  {}

func (e *elsewhere) send(msg any) { e.of.Self.Tell(&ask.Call{From: e, Message: msg}) }

// await returns the next answer of a type.
func await[M any](t *testing.T, e *elsewhere) M {
	t.Helper()
	for {
		select {
		case answer := <-e.answers:
			if msg, is := answer.(M); is {
				return msg
			}
		case <-time.After(zktest.TimeLimit):
			t.Fatalf("no %T for %q", *new(M), e.owner)
		}
	}
}

// A local queue whose owner elsewhere does not confirm a loss waits for that. Requests that come and
// go meanwhile leave nothing in it.
func TestShutLocalQueueDoesNotGrow(t *testing.T) {
	s := zktest.Embedded(t)
	f := newFixture(t, s.Addr(), nil)
	r, err := FromSpec(&messages.LockSpec{Recipe: messages.Recipe_READ_WRITE, LocalQueue: &messages.LocalQueue{}})
	if err != nil {
		t.Fatal(err)
	}
	entry := f.entry("/q", r)
	acquire := func(owner string, kind queue.Kind) *elsewhere {
		e := &elsewhere{of: entry, owner: owner, answers: make(chan any, 10)}
		e.send(&messages.Acquire{Owner: owner, Kind: uint32(kind)})
		return e
	}
	write := acquire("me", queue.Exclusive)
	first := await[*messages.Granted](t, write)
	read := acquire("me", queue.Shared)
	if second := await[*messages.Granted](t, read); first.Node == second.Node {
		t.Fatalf("both grants are by %s", first.Node)
	}
	if err := s.Client(t).Delete(zkpath.Join(first.Path, first.Node), -1); err != nil {
		t.Fatal(err)
	}
	for _, e := range []*elsewhere{write, read} {
		await[*messages.Lost](t, e)
	}
	for range 100 {
		e := acquire("", queue.Exclusive)
		e.send(&messages.Cancel{})
		await[*messages.Refused](t, e)
	}
	next := acquire("", queue.Exclusive)
	f.OpenAt("/q") // answered behind all that came before
	if n := len(entry.Self.Actor().(*localQueueActor).behind); n > 3 {
		t.Errorf("%d calls wait, which are two releases and one request at most", n)
	}
	for _, e := range []*elsewhere{write, read} {
		e.send(&messages.Release{})
	}
	await[*messages.Granted](t, next)
	next.send(&messages.Release{})
	await[*messages.Released](t, next)
}
