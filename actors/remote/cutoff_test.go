package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// deafClient sends the frames, and reads nothing.
type deafClient struct {
	ctx     context.Context
	frames  []*messages.ClientFrame
	welcome chan *messages.Welcome // has what the client would have read first; may be nil
}

// Send implements remote.ServerTransport.
func (d *deafClient) Send(f *messages.ServerFrame) error {
	select {
	case d.welcome <- f.Welcome:
	default:
	}
	<-d.ctx.Done()
	return context.Cause(d.ctx)
}

// Recv implements remote.ServerTransport.
func (d *deafClient) Recv() (*messages.ClientFrame, error) {
	if len(d.frames) == 0 {
		<-d.ctx.Done()
		return nil, context.Cause(d.ctx)
	}
	f := d.frames[0]
	d.frames = d.frames[1:]
	return f, nil
}

// The server ends a stream that does not begin, and one whose client does not read.
func TestStreamsOfNoUse(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := &world{T: t, zk: zktest.Virtual(t), began: time.Now(), fabric: newFabric(nil)}
		w.startServer("server")
		ctx, cancel := context.WithCancel(context.Background())
		serve := func(frames ...*messages.ClientFrame) error {
			return w.servers[0].server.Connect(&deafClient{ctx: ctx, frames: frames}, "deaf")
		}
		if err := serve(); err == nil || !strings.Contains(err.Error(), "Hello") {
			t.Errorf("a stream without a Hello: %v", err)
		}
		deaf := []*messages.ClientFrame{{Hello: &messages.Hello{Version: 1}}}
		const each = 1000
		for n := uint64(0); n < 100; n++ {
			f := &messages.ClientFrame{First: n*each + 1}
			for range each { // each is refused, because it has no lock
				f.Messages = append(f.Messages, &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{}}})
			}
			deaf = append(deaf, f)
		}
		if err := serve(deaf...); err == nil || !strings.Contains(err.Error(), "ended the stream") {
			t.Errorf("a client that reads nothing: %v", err)
		}
		cancel()
		w.closeServer(w.servers[0])
	})
}

// The streams of a client that reads nothing end, though the connection lives: one that another stream
// replaces at once, and the last soon after the lease.
func TestUnreadStreamsEnd(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := &world{T: t, zk: zktest.Virtual(t), began: time.Now(), fabric: newFabric(nil)}
		w.startServer("server")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		welcome := make(chan *messages.Welcome, 1)
		serve := func(hello *messages.Hello) <-chan error {
			done := make(chan error, 1)
			go func() {
				done <- w.servers[0].server.Connect(&deafClient{ctx, []*messages.ClientFrame{{Hello: hello}}, welcome}, "deaf")
			}()
			return done
		}
		ends := func(what string, done <-chan error, within time.Duration) {
			select {
			case <-done:
			case <-time.After(within):
				t.Errorf("%s has not ended within %v", what, within)
			}
		}
		first := serve(&messages.Hello{Version: 1})
		lease := <-welcome
		second := serve(&messages.Hello{Version: 1, Lease: lease.Lease, Incarnation: lease.Incarnation})
		if again := <-welcome; !again.Resumed {
			t.Fatalf("not resumed: %v", again)
		}
		ends("the first stream", first, time.Second)
		ends("the last stream", second, leaseTime+10*time.Second)
		cancel()
		w.closeServer(w.servers[0])
	})
}

// The data of a client's open requests are bounded, and count no more once the requests are over.
func TestDataOfOneClient(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, "server")
		w.startServer("server")
		l, err := remote.DialBy(t.Context(), w.dialer("client"), w.names, remote.DialConfig{})
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, 400<<10)
		for range 2 {
			var grants []*actors.Grant
			for i := range 100 {
				g, err := l.Mutex(fmt.Sprintf("/locks/%d", i)).Lock(t.Context(), actors.WithData(data))
				if err != nil {
					if !errors.Is(err, actors.ErrLimit) {
						t.Fatal(err)
					}
					break
				}
				grants = append(grants, g)
			}
			if want := (8 << 20) / len(data); len(grants) != want {
				t.Errorf("%d grants, want %d", len(grants), want)
			}
			for _, g := range grants {
				if err := g.Unlock(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		l.Close()
		w.closeServer(w.servers[0])
	})
}

// eagerClient renews its lease as often as it can.
type eagerClient struct {
	sent, answered atomic.Uint64
	stop           chan struct{}
}

// Send implements remote.ServerTransport.
func (e *eagerClient) Send(f *messages.ServerFrame) error {
	if f.Renewed != nil {
		e.answered.Add(1)
	}
	return nil
}

// Recv implements remote.ServerTransport.
func (e *eagerClient) Recv() (*messages.ClientFrame, error) {
	sent := e.sent.Add(1)
	if sent > 1000 {
		<-e.stop
	}
	select {
	case <-e.stop:
		return nil, io.EOF
	default:
	}
	if sent == 1 {
		return &messages.ClientFrame{Hello: &messages.Hello{Version: 1}}, nil
	}
	return &messages.ClientFrame{Renew: &messages.Renew{Number: sent - 1, Got: sent - 2}}, nil
}

// The server answers only so many renewals of one client, and takes in few more.
func TestRenewalsOfOneClient(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := &world{T: t, zk: zktest.Virtual(t), began: time.Now(), fabric: newFabric(nil)}
		w.startServer("server")
		e := &eagerClient{stop: make(chan struct{})}
		done := make(chan struct{})
		go func() { defer close(done); w.servers[0].server.Connect(e, "eager") }()
		synctest.Wait()
		if answered, sent := e.answered.Load(), e.sent.Load(); answered != 64 || sent > 70 {
			t.Errorf("%d renewals at once are answered and %d are read, want 64 and no more than 70", answered, sent)
		}
		<-time.After(10*time.Second + 50*time.Millisecond)
		if answered, sent := e.answered.Load(), e.sent.Load(); answered != 64+100 || sent > 64+550 {
			t.Errorf("in ten seconds %d renewals are answered and %d are read, want 100 and at most 550", answered-64, sent-64)
		}
		close(e.stop)
		<-done
		w.closeServer(w.servers[0])
	})
}

// readingClient sends the frames, and takes what the server sends.
type readingClient struct {
	deafClient
	got chan *messages.ServerFrame
}

// Send implements remote.ServerTransport.
func (r *readingClient) Send(f *messages.ServerFrame) error { r.got <- f; return nil }

// A client may ask for a lock before it renews its lease.
func TestAcquireAheadOfTheFirstRenewal(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, "server")
		w.startServer("server")
		ctx, cancel := context.WithCancel(t.Context())
		acquire := &messages.AcquireLock{Path: "/a", Lock: &messages.LockSpec{}, Acquire: &messages.Acquire{RequestId: 1}}
		c := &readingClient{deafClient{ctx: ctx, frames: []*messages.ClientFrame{{Hello: &messages.Hello{Version: 1}},
			{First: 1, Messages: []*messages.ClientMessage{{What: &messages.ClientMessage_Acquire{Acquire: acquire}}}}}}, make(chan *messages.ServerFrame, 100)}
		done := make(chan struct{})
		go func() { defer close(done); w.servers[0].server.Connect(c, "reading") }()
		answer := <-c.got
		for answer.Ended == nil && len(answer.Messages) == 0 {
			answer = <-c.got
		}
		if answer.Ended != nil || answer.Messages[0].GetGranted() == nil {
			t.Errorf("the answer is %v", answer)
		}
		cancel()
		<-done
		w.closeServer(w.servers[0])
	})
}

// A server that drains does not wait for a client whose connection has ended before its lease was
// granted: it believes in nothing, and has nothing to resume.
func TestDrainWithoutAGrantedLease(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, "server")
		w.startServer("server")
		ctx, cancel := context.WithCancel(t.Context())
		c := &readingClient{deafClient{ctx: ctx, frames: []*messages.ClientFrame{{Hello: &messages.Hello{Version: 1}}}}, make(chan *messages.ServerFrame, 100)}
		done := make(chan struct{})
		go func() { defer close(done); w.servers[0].server.Connect(c, "reading") }()
		<-c.got
		cancel()
		<-done
		begun := time.Now()
		if err := w.servers[0].server.Drain(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the drain took %v", took)
		}
		w.closeServer(w.servers[0])
	})
}
