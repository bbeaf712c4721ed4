package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/actorlock/actorlock/actors"
)

var verifyCommand = &command{
	name:      "verify",
	arguments: "[flags] [TOKEN [LOCK|NODE]]",
	about: "Asks ZooKeeper whether the grant of TOKEN holds: exit code 0, or 70 if it does not.\n" +
		"Without arguments it takes ACTORLOCK_TOKEN and ACTORLOCK_NODE, which a command of lockrun has.",
	examples: []string{
		"verify -zk zk1:2181                       # in a command of lockrun",
		"verify -zk zk1:2181 0000000000000000.0000000000000a1f.00000000 /locks/backup",
	},
	define:   defineJSON,
	check:    (*options).checkVerify,
	run:      verify,
	connects: true,
}

func (o *options) checkVerify() error {
	path := os.Getenv("ACTORLOCK_NODE")
	switch len(o.args) {
	case 0:
		o.token = os.Getenv("ACTORLOCK_TOKEN")
	case 1:
		o.token = o.args[0]
	case 2:
		o.token, path = o.args[0], o.args[1]
	default:
		return fmt.Errorf("argument %q: a token and a lock or node are accepted", o.args[2])
	}
	if o.token == "" {
		return errors.New("the token is missing: give it as the argument, or in ACTORLOCK_TOKEN")
	}
	if path == "" {
		return errors.New("the lock is missing: give its path or the path of the holder's node behind the token, or in ACTORLOCK_NODE")
	}
	if _, err := actors.ParseToken(o.token); err != nil {
		return plain(err)
	}
	return o.setLock(path)
}

// verification is the result as -json prints it.
type verification struct {
	Holds  bool   `json:"holds"`
	Token  string `json:"token"`
	Node   string `json:"node,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func verify(o *options) (int, error) {
	return withLocks(o, func(ctx context.Context, locks *actors.Locks) error {
		ctx, cancel := o.requestContext(ctx)
		defer cancel()
		node, err := o.verifyAny(ctx, locks)
		switch {
		case err != nil && !errors.Is(err, actors.ErrNotHeld):
			return err
		case !o.json && err != nil:
			return err
		case !o.json:
			say("the token holds, by %s", node)
			return nil
		}
		result := verification{Holds: err == nil, Token: o.token, Node: node}
		if err != nil {
			result.Reason = plain(err).Error()
		}
		return errors.Join(printJSON(result), err)
	})
}

// verifyAny verifies the token for the node, or for each holder of the lock. It returns the node of
// the grant that holds.
func (o *options) verifyAny(ctx context.Context, locks *actors.Locks) (node string, err error) {
	token, err := actors.ParseToken(o.token)
	if err != nil {
		return "", err
	}
	if o.node != "" {
		return o.node, locks.VerifyToken(ctx, o.node, token)
	}
	q, err := inspect(ctx, locks, o.path)
	if err != nil {
		return "", err
	}
	for _, holder := range q.holders() {
		err := locks.VerifyToken(ctx, holder.Node, token)
		if !errors.Is(err, actors.ErrNotHeld) {
			return holder.Node, err
		}
	}
	return "", fmt.Errorf("%w: no holder of %s has the token %s", actors.ErrNotHeld, o.path, o.token)
}
