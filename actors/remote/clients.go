package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/access"
	"github.com/actorlock/actorlock/messages"
)

// ClientState is a client of a lock server, at one moment.
type ClientState struct {
	// Number numbers the clients of the server from 1 on. The server's log has it.
	Number uint64
	// Program is the name of the client's program, as the client gives it. Identity and Address are those
	// of its Peer.
	Program, Identity, Address string
	// Connected reports whether the client has a stream. Without one it may resume its lease.
	Connected bool
	// LeaseLeft is the time until the lease ends unless the client renews it.
	LeaseLeft time.Duration
	// Held and Waiting are how many requests hold and wait.
	Held, Waiting int
	// PendingMessages and PendingBytes are of the messages that the client has not confirmed.
	PendingMessages, PendingBytes int
}

// Clients returns the clients of the lock server of Locks from Dial, in the order of their numbers. It
// blocks until the server has answered or ctx ends. ServerConfig.Allow is asked for VerbInspect of the
// path "/": a client that may not has ErrNoAuth. Locks with a ZooKeeper session of their own have
// ErrInvalid.
func Clients(ctx context.Context, locks *actors.Locks) (all []ClientState, err error) {
	server := access.Manager(locks).Remote
	if server == nil {
		return nil, fmt.Errorf("%w: these locks have no lock server: it is that of Dial which has clients", actors.ErrInvalid)
	}
	for {
		var part []ClientState
		arguments, _ := json.Marshal(clientsArguments{After: lastOf(all)}) // of a number
		var wrong error
		err := server.Ask(ctx, &messages.Question{Kind: clientsQuestion, Path: "/", Arguments: arguments}, func(value []byte) bool {
			wrong = json.Unmarshal(value, &part)
			return false
		})
		switch err = cmp.Or(err, wrong); {
		case err != nil:
			return nil, fmt.Errorf("clients of the lock server: %w", err)
		case len(part) == 0 || lastOf(part) <= lastOf(all):
			return all, nil
		}
		all = append(all, part...)
	}
}

func lastOf(all []ClientState) uint64 {
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].Number
}

// clientsQuestion is the kind of the question for the clients of a server.
const clientsQuestion = "clients"

// clientsArguments are its arguments: the answer has the clients whose numbers are above After.
type clientsArguments struct {
	After uint64 `json:"after"`
}

// An answer has so many bytes but for its last client. Of an identity it has the first bytes.
const (
	maxClientsBytes  = maxAnswer / 2
	maxIdentityShown = 1 << 10
)

// maxClientsOfAnswer is how many clients an answer has at most. Tests lower it.
var maxClientsOfAnswer = 1000

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
