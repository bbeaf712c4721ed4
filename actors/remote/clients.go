package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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
