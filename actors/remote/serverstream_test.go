package remote_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// scriptedClient is a stream of a client that sends the frames that a test puts.
type scriptedClient struct {
	up    chan *messages.ClientFrame // closed: the stream breaks
	down  chan *messages.ServerFrame
	fails func(*messages.ServerFrame) bool // has the Send of a frame fail; nil: none
}

var errBroken = errors.New("the stream is broken")

// Send implements remote.ServerTransport.
func (c *scriptedClient) Send(f *messages.ServerFrame) error {
	if c.fails != nil && c.fails(f) {
		return errBroken
	}
	c.down <- f
	return nil
}

// Recv implements remote.ServerTransport.
func (c *scriptedClient) Recv() (*messages.ClientFrame, error) {
	if f, is := <-c.up; is {
		return f, nil
	}
	return nil, errBroken
}

// open has the server serve a stream that begins with a Hello, and returns the Welcome. ended has the error
// with which the server ends the stream.
func (c *scriptedClient) open(s *remote.LockServer, name string, hello *messages.Hello) (welcome *messages.Welcome, ended chan error) {
	c.up, c.down, ended = make(chan *messages.ClientFrame, 10), make(chan *messages.ServerFrame, 100), make(chan error, 1)
	hello.Version = 1
	c.up <- &messages.ClientFrame{Hello: hello}
	go func() { ended <- s.Connect(c, name) }()
	return (<-c.down).Welcome, ended
}

// bubbleServer returns a lock server in a bubble, and its log.
func bubbleServer(t *testing.T) (*remote.LockServer, *locktest.Log) {
	log := new(locktest.Log)
	zk := zktest.Virtual(t)
	locks, err := actors.Connect(t.Context(), zk.Addr(), actors.Config{Dial: zk.Dial, SessionTimeout: sessionTimeout, Margin: sessionMargin})
	if err != nil {
		t.Fatal(err)
	}
	s, err := remote.NewServer(locks, remote.ServerConfig{Lease: leaseTime, Logger: log.Logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), locks.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, log
}

// A stream on which the server cannot send ends with that error, and its client resumes the lease on the
// next one, which brings what was lost.
func TestFailedSend(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		s, _ := bubbleServer(t)
		c := &scriptedClient{fails: func(f *messages.ServerFrame) bool { return len(f.Messages) > 0 }}
		welcome, ended := c.open(s, "name", &messages.Hello{})
		c.up <- &messages.ClientFrame{Renew: &messages.Renew{Number: 1}}
		<-c.down
		c.up <- acquireFrame()
		if err := <-ended; !errors.Is(err, errBroken) {
			t.Errorf("the stream has ended with %v", err)
		}
		close(c.up)
		c = &scriptedClient{}
		again, ended := c.open(s, "name", &messages.Hello{Lease: welcome.Lease, Incarnation: welcome.Incarnation})
		if !again.Resumed {
			t.Fatal("the lease is not resumed")
		}
		for f := range c.down {
			if len(f.Messages) > 0 {
				if f.First != 1 || f.Messages[0].GetGranted().GetRequestId() != 1 {
					t.Errorf("%v", f)
				}
				break
			}
		}
		c.up <- &messages.ClientFrame{Bye: true}
		close(c.up)
		<-ended
	})
}

// acquireFrame is a frame with a client's first request.
func acquireFrame() *messages.ClientFrame {
	return &messages.ClientFrame{First: 1, Messages: []*messages.ClientMessage{{What: &messages.ClientMessage_Acquire{
		Acquire: &messages.AcquireLock{Path: "/lock", Lock: &messages.LockSpec{}, Acquire: &messages.Acquire{RequestId: 1}}}}}}
}

// The line about a client that has gone with a lock has the client's identity.
func TestIdentityInTheLog(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		s, log := bubbleServer(t)
		c := &scriptedClient{}
		_, ended := c.open(s, "spiffe://prod/billing", &messages.Hello{})
		c.up <- &messages.ClientFrame{Renew: &messages.Renew{Number: 1}}
		c.up <- acquireFrame()
		<-time.After(time.Second)
		close(c.up)
		<-ended
		<-time.After(2 * leaseTime)
		lines := log.With("lease of a client has ended")
		if len(lines) != 1 || !strings.Contains(lines[0], "spiffe://prod/billing") {
			t.Errorf("%q", lines)
		}
	})
}
