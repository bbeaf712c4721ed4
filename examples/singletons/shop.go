package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/actorlock/actorlock/actors"
)

// shop has the actors of the accounts. It reports an actor whose token is not greater than the
// former actor's. A database does that by a column for the token.
type shop struct {
	mu      sync.Mutex
	at      map[string]string // the member that has the account's actor
	members map[string]int    // how many actors each has
	tokens  map[string]actors.Token
	err     error
	changed chan struct{} // has a value after a change
}

func newShop(keys int) *shop {
	return &shop{at: make(map[string]string, keys), members: map[string]int{}, tokens: make(map[string]actors.Token, keys), changed: make(chan struct{}, 1)}
}

func (s *shop) open(key, member string, token actors.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, taken := s.at[key]; taken {
		s.err = fmt.Errorf("%q has an actor in %s and another one in %s", key, other, member)
	}
	if last, again := s.tokens[key]; again && last.Compare(token) >= 0 {
		s.err = fmt.Errorf("%q: token %v comes after %v", key, token, last)
	}
	s.at[key], s.tokens[key] = member, token
	s.members[member]++
	s.change()
}

func (s *shop) close(key, member string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[member]--
	delete(s.at, key)
	s.change()
}

func (s *shop) change() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// await blocks until done returns true, which it calls after changes, or until ctx ends.
func (s *shop) await(ctx context.Context, done func() bool) error {
	for {
		s.mu.Lock()
		over, n := done(), len(s.at)
		s.mu.Unlock()
		if over {
			return nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return fmt.Errorf("%d accounts have an actor: %w", n, context.Cause(ctx))
		}
	}
}

// has returns how many actors a member has.
func (s *shop) has(member string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members[member]
}

func (s *shop) failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
