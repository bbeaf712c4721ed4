package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/messages"
)

// answerClients answers the question for the clients.
func (s *LockServer) answerClients(ctx context.Context, arguments []byte, next func(value []byte) (more bool)) error {
	var from clientsArguments
	if len(arguments) > 0 {
		if err := json.Unmarshal(arguments, &from); err != nil {
			return &messages.Refused{Reason: messages.Reason_INVALID, Detail: fmt.Sprintf("arguments of the question %q: %v", clientsQuestion, err)}
		}
	}
	var states []ClientState
	for clients := s.clientsAfter(from.After); len(states) == 0 && len(clients) > 0; { // again if they have gone meanwhile
		states = describeAll(ctx, clients)
		clients = s.clientsAfter(clients[len(clients)-1].number)
	}
	value := []byte{'['}
	for _, state := range states {
		text, err := json.Marshal(state)
		if err != nil {
			return err
		}
		if len(value) > 1 {
			value = append(value, ',')
		}
		if value = append(value, text...); len(value) > maxClientsBytes {
			break
		}
	}
	next(append(value, ']'))
	return nil
}

// describeAll returns the states of those clients that have not gone, or fewer if ctx ends.
func describeAll(ctx context.Context, clients []*servedClient) (all []ClientState) {
	states := make(chan ClientState, len(clients))
	for _, c := range clients {
		c.self.Tell(describe{states})
	}
	for range clients {
		select {
		case state := <-states:
			if state.Number > 0 {
				all = append(all, state)
			}
		case <-ctx.Done():
			return nil
		}
	}
	slices.SortFunc(all, func(a, b ClientState) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// clientsAfter returns the first clients whose numbers are above one.
func (s *LockServer) clientsAfter(number uint64) (all []*servedClient) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		if c.number > number {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b *servedClient) int { return cmp.Compare(a.number, b.number) })
	return all[:min(len(all), maxClientsOfAnswer)]
}

// describe returns the state of the client.
func (c *servedClient) describe() ClientState {
	state := ClientState{Number: c.number, Program: c.name, Identity: readable(c.peer.Name[:min(len(c.peer.Name), maxIdentityShown)]), Address: c.peer.Address, Connected: c.stream != nil,
		LeaseLeft: max(c.lease.End()-c.now(), 0), PendingMessages: len(c.messages.pending), PendingBytes: c.messages.bytes}
	for _, r := range c.requests {
		switch {
		case r.granted != nil:
			state.Held++
		case !r.lost:
			state.Waiting++
		}
	}
	return state
}

// maxClientsOfAnswer is how many clients an answer has at most. Tests lower it.
var maxClientsOfAnswer = 1000

// An answer has so many bytes but for its last client. Of an identity it has the first bytes.
const (
	maxClientsBytes  = maxAnswer / 2
	maxIdentityShown = 1 << 10
)
