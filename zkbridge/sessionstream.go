package zkbridge

import (
	"context"
	"sync"

	"github.com/actorlock/actorlock/messages"
)

// Sessions returns a channel with the present state of the session, and then each change. A reader
// that is slow finds the newest state, not the states between. It has not missed a loss if Epoch is
// the same as before, since each session has a greater epoch than the last. The bridge never waits
// for a reader, and there is no goroutine behind the channel. The channel is closed when ctx ends,
// and after ENDED.
func (b *Bridge) Sessions(ctx context.Context) <-chan Session { return SessionStream(ctx, b) }

// sessionSource has the present state of a session, and tells changes to the subscribers of its Ref,
// as a Bridge does.
type sessionSource interface {
	Session() Session
	Ref() messages.BridgeRef
}

// SessionStream is Bridge.Sessions for another source.
func SessionStream(ctx context.Context, of sessionSource) <-chan Session {
	s := &sessionStream{of: of, out: make(chan Session, 1)}
	s.Tell(nil)
	of.Ref().SendSubscribe(&messages.Subscribe{}, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.stopContext = context.AfterFunc(ctx, s.end)
	}
	return s.out
}

// sessionStream is a subscriber that keeps the newest state for its reader.
type sessionStream struct {
	of sessionSource

	mu          sync.Mutex
	out         chan Session // has room for one state
	last        Session      // last written to out, zero before the first
	over        bool         // out is closed
	stopContext func() bool  // stops waiting for the context
}

// Tell writes the newest state to the channel. The bridge has stored the state before.
func (s *sessionStream) Tell(any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.of.Session()
	if s.over || now.State == s.last.State && now.Epoch == s.last.Epoch {
		return
	}
	s.last = now
	select {
	case <-s.out: // not read yet
	default:
	}
	s.out <- now
	if now.State == messages.SessionState_ENDED {
		if s.stopContext != nil {
			s.stopContext()
		}
		s.close()
	}
}

// end closes the channel of a reader whose context has ended.
func (s *sessionStream) end() {
	s.mu.Lock()
	if !s.over {
		s.close()
	}
	s.mu.Unlock()
	s.of.Ref().SendUnsubscribe(&messages.Unsubscribe{}, s)
}

// close needs s.mu.
func (s *sessionStream) close() {
	s.over = true
	close(s.out)
}
