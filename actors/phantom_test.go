package actors_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// logged is a log that several goroutines write.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A server goes on to show the node of a holder that has left. The waiters behind that node come to
// hold nevertheless, in their session, by each recipe that waits for nodes.
func TestWaitBehindPhantom(t *testing.T) {
	t.Parallel()
	bubble(t, func(v *virtual) {
		var log logged
		address := make(chan string, 100)
		waiters, err := actors.Connect(within(v), "one:1,two:1", actors.Config{SessionTimeout: session,
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Dial: func(ctx context.Context, network, to string) (net.Conn, error) {
				address <- to
				return v.Dial(ctx, network, to)
			}})
		must(v, err)
		v.opened = append(v.opened, waiters)
		holders, _ := v.mutex()
		bad := <-address
		var waiting []*actors.Future[*actors.Grant]
		var held []*actors.Grant
		for _, of := range []func(l *actors.Locks) locker{
			func(l *actors.Locks) locker { return l.Mutex("/lock-mutex") },
			func(l *actors.Locks) locker { return l.RWMutex("/lock-rw").Write() },
			func(l *actors.Locks) locker { return l.Semaphore("/lock-semaphore", 1) },
			func(l *actors.Locks) locker {
				return l.Mutex("/lock-local", actors.LocalQueue(actors.LocalQueueConfig{}))
			},
			func(l *actors.Locks) locker { return l.SimpleMutex("/lock-simple") }, // which asks the leader anyway
		} {
			g := lock(v, of(holders))
			v.Haunt(bad, g.Node())
			held = append(held, g)
			waiting = append(waiting, of(waiters).Acquire(context.Background()))
		}
		<-time.After(10 * time.Second)
		for _, g := range held {
			unlock(v, g)
		}
		<-time.After(30 * time.Second)
		pending(v, waiting[:len(waiting)-1]...)
		<-time.After(3 * time.Minute)
		for i, f := range waiting {
			if !isClosed(f.Done()) {
				v.Fatalf("%s waits for a phantom: %s", held[i].Path(), log.String())
			}
			g := result(v, f)
			if s := waiters.Session(); s.Epoch != 1 || g.Err() != nil {
				v.Errorf("%s: %v in %+v", g.Path(), g.Err(), s)
			}
			unlock(v, g)
		}
		if text := log.String(); !strings.Contains(text, bad) || !strings.Contains(text, "leader does not have") {
			v.Errorf("the log does not name %s: %s", bad, text)
		}
	})
}
