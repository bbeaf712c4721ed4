package zkbridge

import (
	"context"
	"sync"

	"github.com/actorlock/actorlock/messages"
)

// Sessions gives the present state of the session at once, and then each change. A
// reader that is slow finds the newest state, not those in between; it has not missed a
// loss if Epoch is the same as before, since each session has a greater one than the
// last. The bridge never waits for a reader, and there is no goroutine behind the
// channel. It is closed when ctx ends, and after SHUT.
func (b *Bridge) Sessions(ctx context.Context) <-chan Session {
	s := &sessionStream{bridge: b, out: make(chan Session, 1)}
	s.Tell(nil)
	b.Ref().SendSubscribe(&messages.Subscribe{}, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.unwatch = context.AfterFunc(ctx, s.end)
	}
	return s.out
}

// sessionStream is a subscriber that keeps the newest state for its reader.
type sessionStream struct {
	bridge *Bridge

	mu      sync.Mutex
	out     chan Session // holds one
	last    Session
	told    bool
	over    bool
	unwatch func() bool // stops waiting for the context
}

// Tell hears that there is something new. What it is, the bridge has stored before.
func (s *sessionStream) Tell(any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.bridge.Session()
	if s.over || s.told && now.State == s.last.State && now.Epoch == s.last.Epoch {
		return
	}
	s.last, s.told = now, true
	select {
	case <-s.out: // nobody has read it
	default:
	}
	s.out <- now
	if now.State == messages.SessionState_SHUT {
		if s.unwatch != nil {
			s.unwatch()
		}
		s.close()
	}
}

// end is for a reader that has gone.
func (s *sessionStream) end() {
	s.mu.Lock()
	if !s.over {
		s.close()
	}
	s.mu.Unlock()
	s.bridge.Ref().SendUnsubscribe(&messages.Unsubscribe{}, s)
}

// close needs s.mu.
func (s *sessionStream) close() {
	s.over = true
	close(s.out)
}
