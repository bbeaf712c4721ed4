package remote_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/sample"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// quietWorld is a history without random faults, whose clients and servers end with it.
func quietWorld(t *testing.T, f func(w *world)) {
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.names = []string{"server"}
		w.startServer("server")
		f(w)
		for _, c := range w.clients {
			c.locks.Close()
		}
		for _, s := range w.servers {
			w.closeServer(s)
		}
	})
}

// keeps fails the test unless the grant is held for a time that is longer than a lease.
func (w *world) keeps(g *actors.Grant) {
	w.Helper()
	select {
	case <-g.Done():
		w.Fatalf("the grant is lost: %v", g.Err())
	case <-time.After(3 * leaseTime):
	}
}

func (w *world) mustLock(c *clientProcess, path string) *actors.Grant {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	g, err := c.locks.Mutex(path).Lock(ctx)
	if err != nil {
		w.Fatal(err)
	}
	return g
}

// A text that is not UTF-8, which no message can have, is an error of its call, and costs the client
// nothing else.
func TestTextThatIsNotUTF8(t *testing.T) {
	t.Parallel()
	quietWorld(t, func(w *world) {
		c := w.dialAs("client", 0)
		held := w.mustLock(c, "/held")
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		const text = "caf\xe9"
		for call, err := range map[string]func() error{
			"Lock":    func() error { _, err := c.locks.Mutex("/a").Lock(ctx, actors.WithOwner(text)); return err },
			"Lock of": func() error { _, err := c.locks.Mutex("/" + text).Lock(ctx); return err },
			"MultiLock": func() error {
				_, err := c.locks.MultiLock(c.locks.Mutex("/a"), c.locks.Mutex("/"+text)).Lock(ctx)
				return err
			},
			"FindLocks":   func() error { _, err := c.locks.FindLocks(ctx, "/"+text); return err },
			"Revoke":      func() error { _, err := c.locks.Revoke(ctx, "/a/"+text, 0); return err },
			"SharedCount": func() error { _, err := c.locks.SharedCount("/"+text, 1).Get(ctx); return err },
			"Inspect":     func() error { _, err := c.locks.Inspect(ctx, "/"+text); return err },
		} {
			if err := err(); !errors.Is(err, actors.ErrInvalid) {
				t.Errorf("%s: %v", call, err)
			}
		}
		w.mustLock(c, "/after").Release()
		w.breakStreams("", "")
		w.keeps(held)
	})
}

// A client observes a long queue, and hears nothing for a part of its lease: the answers that come
// meanwhile replace each other, and the lease goes on.
func TestObserverKeepsItsLease(t *testing.T) {
	sample.OneRaceRunIn(t, 4)
	t.Parallel()
	quietWorld(t, func(w *world) {
		c, others := w.dialAs("client", 0), w.dialAs("others", 0)
		held, ctx := w.mustLock(c, "/held"), w.Context()
		queue := others.locks.Mutex("/queue")
		var waiting []*actors.Future[*actors.Grant]
		for range 600 {
			waiting = append(waiting, queue.Acquire(ctx, actors.WithData(make([]byte, 600))))
		}
		<-time.After(time.Second)
		const observers = 4
		var newest [observers]actors.Queue
		observing, end := context.WithCancel(ctx)
		var done sync.WaitGroup
		for i := range observers {
			done.Go(func() {
				for q := range c.locks.Observe(observing, "/queue") {
					newest[i] = q
				}
			})
		}
		<-time.After(time.Second)
		w.cut("server", "client", leaseTime*3/4)
		for range 180 { // the four observers have 0.7 MB each, ten times in a second
			w.mustTry(others, "/queue")
		}
		w.keeps(held)
		last := others.locks.Mutex("/queue").Acquire(ctx, actors.WithData([]byte("last")))
		<-time.After(5 * time.Second)
		end()
		done.Wait()
		for _, q := range newest {
			if n := len(q.Participants); n != 601 {
				t.Errorf("the newest queue has %d participants: %v", n, q.Err)
			}
		}
		last.Cancel()
		for _, f := range waiting {
			f.Cancel()
		}
	})
}

// mustTry has a queue change twice.
func (w *world) mustTry(c *clientProcess, path string) {
	ctx, cancel := context.WithTimeout(w.Context(), 8*time.Millisecond)
	defer cancel()
	c.locks.Mutex(path).Lock(ctx)
	<-time.After(8 * time.Millisecond)
}

// Nothing comes through the connection of a client any more, and neither end is told so: the client uses
// another one before its lease is over.
func TestHalfOpenConnection(t *testing.T) {
	t.Parallel()
	quietWorld(t, func(w *world) {
		c := w.dialAs("client", 0)
		held := w.mustLock(c, "/held")
		for range 5 {
			<-time.After(300 * time.Millisecond)
			w.halfOpen("client", "server")
			w.keeps(held)
			w.mustLock(c, "/other").Release()
		}
	})
}

// The error of an outage says when the last answer came.
func TestOutageBeginsAtLastAnswer(t *testing.T) {
	t.Parallel()
	quietWorld(t, func(w *world) {
		c := w.dialAs("client", 0)
		w.mustLock(c, "/held")
		last := time.Now()
		w.cutAll("client", w.names, time.Hour)
		<-time.After(2 * leaseTime)
		ctx, cancel := context.WithTimeout(w.Context(), time.Second)
		defer cancel()
		_, err := c.locks.Mutex("/other").Lock(ctx)
		if want := "since " + last.Format("15:04:05"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %q", err, want)
		}
		w.heal()
	})
}

// One name leads to several lock servers, now to this one and now to that: a client whose stream is cut
// tries until it reaches the one that has its lease.
func TestOneNameOfSeveralServers(t *testing.T) {
	t.Parallel()
	quietWorld(t, func(w *world) {
		w.startServer("second")
		w.startServer("third")
		first := w.servers[0].server
		c := w.dialAs("client", 0)
		for i := range 6 {
			w.set("server", first)
			held := w.mustLock(c, fmt.Sprintf("/held%d", i))
			w.set("server", w.servers[1+i%2].server)
			w.breakStreams("client", "server")
			<-time.After(time.Duration(i) * 200 * time.Millisecond)
			w.set("server", w.servers[1+(i+1)%2].server)
			<-time.After(time.Duration(i) * 200 * time.Millisecond)
			w.set("server", first)
			w.keeps(held)
			held.Release()
		}
	})
}

// A client whose lock server was started anew goes on to it at once, and says so.
func TestServerStartedAnew(t *testing.T) {
	t.Parallel()
	quietWorld(t, func(w *world) {
		c := w.dialAs("client", 0)
		held := w.mustLock(c, "/held")
		<-time.After(time.Second)
		w.killServer(w.servers[0])
		w.startServer("server")
		at := time.Now()
		<-held.Done()
		if err := held.Err(); time.Since(at) > leaseTime/2 || err == nil || !strings.Contains(err.Error(), "started anew") {
			t.Errorf("after %v: %v", time.Since(at), err)
		}
		w.servers[0].wire.heal()
		w.servers[0].server.Close()
		w.servers[0].close()
		w.servers = w.servers[1:]
	})
}
