package remote_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// uselessServer welcomes each client, and renews no lease.
type uselessServer struct {
	streams, renewals atomic.Int64
	then              *messages.ServerFrame // sent behind the Welcome; nil: none
}

type uselessStream struct {
	*uselessServer
	ctx  context.Context
	sent int
}

// Send implements remote.ClientTransport.
func (s *uselessStream) Send(f *messages.ClientFrame) error {
	if f.Renew != nil {
		s.renewals.Add(1)
	}
	return nil
}

// CloseSend implements remote.ClientTransport.
func (s *uselessStream) CloseSend() error { return nil }

// Recv implements remote.ClientTransport.
func (s *uselessStream) Recv() (*messages.ServerFrame, error) {
	s.sent++
	switch {
	case s.sent == 1:
		return &messages.ServerFrame{Welcome: &messages.Welcome{Lease: uint64(s.streams.Load()), Incarnation: 1, State: &messages.State{Connected: true}}}, nil
	case s.sent == 2 && s.then != nil:
		return s.then, nil
	case s.then.GetRenewed() != nil:
		select {
		case <-time.After(time.Second):
			return s.then, nil
		case <-s.ctx.Done():
		}
	}
	<-s.ctx.Done()
	return nil, io.EOF
}

// A client that gets no lease asks less and less often: thousands of them would keep a server from
// ever being done otherwise.
func TestAttemptsWithoutLease(t *testing.T) {
	for name, then := range map[string]*messages.ServerFrame{
		"no answer":                  nil,
		"goes away":                  {GoAway: true},
		"answers what was not asked": {Renewed: &messages.Renewed{Number: 1 << 60, ForNanos: 1 << 40}},
		"ended":                      {Ended: &messages.Ended{Reason: messages.Reason_CLOSED}},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				s := &uselessServer{then: then}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				locks, err := remote.DialBy(ctx, func(ctx context.Context, _ string) (remote.ClientTransport, error) {
					s.streams.Add(1)
					return &uselessStream{uselessServer: s, ctx: ctx}, nil
				}, []string{"server"}, remote.DialConfig{})
				if err == nil {
					locks.Close()
					t.Fatal("the client has a lease")
				}
				if strings.Contains(err.Error(), "ZooKeeper") || !errors.Is(err, actors.ErrSuspended) {
					t.Error(err)
				}
				t.Logf("%d streams and %d renewals in 10 minutes", s.streams.Load(), s.renewals.Load())
				if n := s.streams.Load(); n < 10 || n > 300 {
					t.Errorf("%d streams in 10 minutes, want one in some seconds", n)
				}
				if n := s.renewals.Load(); n > 300 {
					t.Errorf("%d renewals in 10 minutes, want one in some seconds", n)
				}
			})
		})
	}
}
