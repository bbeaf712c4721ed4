package remote_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// scriptedServer is a stream of a lock server that keeps to the protocol, but for its answers.
type scriptedServer struct {
	ctx    context.Context
	answer func(*messages.ClientMessage) []*messages.ServerMessage
	frames chan *messages.ServerFrame

	received, sent uint64
}

// Send implements remote.ClientTransport: it takes a frame of the client.
func (s *scriptedServer) Send(f *messages.ClientFrame) error {
	if f.Hello != nil {
		s.frames <- &messages.ServerFrame{Welcome: &messages.Welcome{Lease: 1, Incarnation: 1, State: &messages.State{Connected: true}}}
	}
	if f.Renew != nil {
		s.frames <- &messages.ServerFrame{Received: s.received, Renewed: &messages.Renewed{Number: f.Renew.Number, ForNanos: int64(time.Hour)}}
	}
	for _, m := range f.Messages {
		s.received++
		all := s.answer(m)
		s.frames <- &messages.ServerFrame{Received: s.received, First: s.sent + 1, Messages: all}
		s.sent += uint64(len(all))
	}
	return nil
}

// CloseSend implements remote.ClientTransport.
func (s *scriptedServer) CloseSend() error { return nil }

// Recv implements remote.ClientTransport.
func (s *scriptedServer) Recv() (*messages.ServerFrame, error) {
	select {
	case f := <-s.frames:
		return f, nil
	case <-s.ctx.Done():
		return nil, context.Cause(s.ctx)
	}
}

// A message that does not fit the state of its request ends the request with INTERNAL: its owner must not
// wait for an answer that does not come, or hold what the server takes for released. The server is told.
func TestUnfitMessages(t *testing.T) {
	granted := func(id uint64, path string) *messages.ServerMessage {
		return &messages.ServerMessage{What: &messages.ServerMessage_Granted{Granted: &messages.Granted{RequestId: id, Path: path, Node: "n-1", Czxid: 1}}}
	}
	refused := func(id uint64) *messages.ServerMessage {
		return &messages.ServerMessage{What: &messages.ServerMessage_Refused{Refused: &messages.Refused{RequestId: id, Reason: messages.Reason_LIMIT_EXCEEDED}}}
	}
	released := func(id uint64) *messages.ServerMessage {
		return &messages.ServerMessage{What: &messages.ServerMessage_Released{Released: &messages.Released{RequestId: id}}}
	}
	lost := func(id uint64) *messages.ServerMessage {
		return &messages.ServerMessage{What: &messages.ServerMessage_Lost{Lost: &messages.Lost{RequestId: id, Reason: messages.Reason_NODE_DELETED}}}
	}
	revoke := func(id uint64) *messages.ServerMessage {
		return &messages.ServerMessage{What: &messages.ServerMessage_RevokeRequested{RevokeRequested: &messages.RevokeRequested{RequestId: id}}}
	}
	type answers = []*messages.ServerMessage
	for name, c := range map[string]struct {
		answers func(id uint64) answers
		grants  bool // a grant comes
		ends    bool // the request, or the grant, ends with INTERNAL
	}{
		"a grant of another lock":         {func(id uint64) answers { return answers{granted(id, "/other")} }, false, true},
		"a release before a grant":        {func(id uint64) answers { return answers{released(id)} }, false, true},
		"a loss before a grant":           {func(id uint64) answers { return answers{lost(id)} }, false, true},
		"a refusal behind a grant":        {func(id uint64) answers { return answers{granted(id, "/lock"), refused(id)} }, true, true},
		"a release without being asked":   {func(id uint64) answers { return answers{granted(id, "/lock"), released(id)} }, true, true},
		"a second grant":                  {func(id uint64) answers { return answers{granted(id, "/lock"), granted(id, "/lock")} }, true, false},
		"a revocation ahead of its grant": {func(id uint64) answers { return answers{revoke(id), granted(id, "/lock")} }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			zktest.Bubble(t, func(t *testing.T) {
				ended := make(chan uint64, 10)
				answer := func(m *messages.ClientMessage) answers {
					switch m := m.What.(type) {
					case *messages.ClientMessage_Acquire:
						return c.answers(m.Acquire.Acquire.RequestId)
					case *messages.ClientMessage_Cancel:
						ended <- m.Cancel.RequestId
					case *messages.ClientMessage_Release:
						return answers{released(m.Release.RequestId)}
					}
					return nil
				}
				locks, err := remote.DialBy(t.Context(), func(ctx context.Context, _ string) (remote.ClientTransport, error) {
					return &scriptedServer{ctx: ctx, answer: answer, frames: make(chan *messages.ServerFrame, 100)}, nil
				}, []string{"server"}, remote.DialConfig{})
				if err != nil {
					t.Fatal(err)
				}
				g, err := locks.Mutex("/lock").Lock(t.Context())
				if c.grants != (err == nil) {
					t.Fatalf("%v, %v", g, err)
				}
				<-time.After(time.Second)
				if g != nil {
					err = g.Err()
				}
				if c.ends {
					if !errors.Is(err, actors.ErrInternal) || !strings.Contains(err.Error(), "breaks the protocol") {
						t.Errorf("the request has ended with %v", err)
					}
					<-ended
				} else if err != nil {
					t.Errorf("the grant has ended: %v", err)
				} else if err := g.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
				locks.Close()
			})
		})
	}
}
