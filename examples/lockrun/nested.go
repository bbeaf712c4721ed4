package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// heldVariable is the environment variable with the names of the nodes by which the lockruns around
// a command hold their locks, separated by spaces. No two nodes have one name, also on other
// ensembles and below other chroots.
const heldVariable = "ACTORLOCK_HELD"

func heldAround() []string { return strings.Fields(os.Getenv(heldVariable)) }

// blockingKinds are the kinds of contenders for which a mode has to wait.
var blockingKinds = map[string][]string{"mutex": {"exclusive"}, "read": {"write"}, "write": {"read", "write"}, "semaphore": {"permit"}}

// waitsForItself returns an error, and the exit code, if a lockrun around this one holds the lock:
// the request would wait for the end of the command that makes it.
func (o *options) waitsForItself(ctx context.Context, locks *actors.Locks) (int, error) {
	around := heldAround()
	if len(around) == 0 {
		return 0, nil
	}
	ctx, cancel := o.requestContext(ctx)
	defer cancel()
	q, err := inspect(ctx, locks, o.path)
	if err != nil {
		return 0, nil // the request meets the same error, or is granted
	}
	var blocking []contender
	for _, c := range q.all {
		if slices.Contains(around, c.nodeName()) && slices.Contains(blockingKinds[o.mode], c.Kind) {
			blocking = append(blocking, c)
		}
	}
	if len(blocking) < o.permits {
		return 0, nil
	}
	err = fmt.Errorf("the lock %s is held by a lockrun around this one, which waits for this one to end: %s", o.path, blocking[0].name())
	if o.forever {
		return exitUsage, err
	}
	return exitNotAcquired, err
}

// withHolders adds to the error of a request that was not granted which contenders hold the lock,
// if that is known in time.
func (o *options) withHolders(err error, start time.Time, locks *actors.Locks) error {
	ctx, cancel := context.WithTimeout(context.Background(), o.left(start, slack)/2)
	defer cancel()
	q, unread := inspect(ctx, locks, o.path)
	if held := q.heldBy(); unread == nil && held != "" {
		return fmt.Errorf("%w; it is %s", err, held)
	}
	return err
}
