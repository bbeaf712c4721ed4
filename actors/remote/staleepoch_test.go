package remote

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// scripted is a lock server whose streams the test has both ends of.
type scripted chan *scriptedStream

type scriptedStream struct {
	ctx  context.Context
	up   chan *messages.ClientFrame
	down chan *messages.ServerFrame
}

func (s scripted) connect(ctx context.Context, _ string) (clientTransport, error) {
	st := &scriptedStream{ctx, make(chan *messages.ClientFrame, 100), make(chan *messages.ServerFrame, 100)}
	s <- st
	return st, nil
}

func (scripted) abandon(string) {}

func (scripted) close() error { return nil }

// Send implements clientTransport.
func (s *scriptedStream) Send(f *messages.ClientFrame) error { s.up <- f; return nil }

// CloseSend implements clientTransport.
func (s *scriptedStream) CloseSend() error { return nil }

// Recv implements clientTransport.
func (s *scriptedStream) Recv() (*messages.ServerFrame, error) {
	select {
	case f := <-s.down:
		return f, nil
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	}
}

// A request that was sent in the epoch of a lost lease does not go to the server by the next lease:
// the lock sends it again, and the server would grant it twice.
func TestRequestOfALostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, log := make(scripted, 10), slog.New(slog.DiscardHandler)
		system := host.NewSystem(nil, log)
		s := openSession(system, zkbridge.NewClock(nil), log, server, []string{"server"}, "test", 0)
		stream := <-server
		stream.down <- &messages.ServerFrame{Welcome: &messages.Welcome{Lease: 1, State: &messages.State{Connected: true}}}
		stream.down <- &messages.ServerFrame{Renewed: &messages.Renewed{Number: 1, ForNanos: int64(time.Hour)}}
		synctest.Wait()
		if now := s.Session(); now.State != messages.SessionState_CONNECTED || now.Epoch != 1 {
			t.Fatal(now)
		}
		stream.down <- &messages.ServerFrame{Ended: &messages.Ended{Reason: messages.Reason_SESSION_LOST}}
		stream = <-server
		stream.down <- &messages.ServerFrame{Welcome: &messages.Welcome{Lease: 2, State: &messages.State{Connected: true}}}
		synctest.Wait()
		s.send(1, 7, nil, &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{Path: "/lock"}}})
		synctest.Wait()
		for len(stream.up) > 0 {
			if f := <-stream.up; len(f.Messages) > 0 {
				t.Errorf("the server has got %v", f.Messages)
			}
		}
		s.self.Stop()
		<-s.stopped
		system.Close()
	})
}
