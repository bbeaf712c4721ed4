package embedded_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// A whole test of a service, in virtual time: an example for users. One instance of the service works at a time, as long as its
// grant lasts.

// service is what is tested.
type service struct {
	name string
	mu   *actors.Mutex
	log  *journal
}

// journal has what the instances of the service do, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

// run acquires the lock, again after each loss, until ctx ends.
func (s *service) run(ctx context.Context) {
	for {
		grant, err := s.mu.Lock(ctx)
		if err != nil {
			return
		}
		s.log.add("%s leads", s.name)
		<-grant.Context(ctx).Done() // here it would work
		s.log.add("%s stops", s.name)
		grant.Release()
	}
}

// start starts an instance with a connection of its own, until the test ends.
func start(t *testing.T, server *embedded.Server, name string, log *journal) *actors.Locks {
	locks, err := actors.Connect(t.Context(), "embedded", actors.Config{Dial: server.Dial, SessionTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { (&service{name, locks.Mutex("/leader"), log}).run(ctx) })
	t.Cleanup(func() { // a bubble must be left without goroutines
		stop()
		running.Wait()
		locks.Close()
	})
	return locks
}

func TestServiceStopsWithItsLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := embedded.Run(t, embedded.ServerConfig{MemoryOnly: true, TickTime: time.Second})
		log := &journal{}
		first := start(t, server, "first", log)
		synctest.Wait() // until all goroutines are blocked
		start(t, server, "second", log)
		synctest.Wait()
		want(t, "with both", log.take(), []string{"first leads"})

		// ZooKeeper has expired the session, as after a long pause.
		server.Expire(first.Session().ID)
		<-time.After(time.Second) // virtual
		want(t, "after the expiry", sorted(log.take()), []string{"first stops", "second leads"})

		// A leader that is cut off stops before the other leads, though it learns nothing from ZooKeeper.
		leader := server.Sessions()[0]
		want(t, "holds the lock", len(leader.Ephemerals) > 0, true)
		cut := server.Inject(embedded.Fault{Op: embedded.OpAll, Session: leader.ID, Times: -1, Action: embedded.BlackHole})
		<-time.After(30 * time.Second)
		want(t, "after the cut", log.take(), []string{"second stops", "first leads"})
		cut.Remove()
	})
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}
