package main

import (
	"context"
	"fmt"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// printVerbose prints a line to standard error with -v.
func (o *options) printVerbose(format string, args ...any) {
	if o.verbose {
		warn(format, args...)
	}
}

// since returns the time since start, rounded.
func since(start time.Time) time.Duration {
	d := time.Since(start)
	if d < 10*time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

// printPositions prints the place of lockrun in the queue, and the holder, at each change until ctx
// ends.
func (o *options) printPositions(ctx context.Context, locks *actors.Locks) {
	last := ""
	for q := range locks.Observe(ctx, o.path) {
		if line := queueOf(q).position(); line != "" && line != last {
			o.printVerbose("%s", line)
			last = line
		}
	}
}

// position returns a line with the place of lockrun in the queue, and the holder. It returns an
// empty text if lockrun does not wait.
func (q lockQueue) position() string {
	for _, c := range q.all {
		if !c.mine || c.Holds {
			continue
		}
		line := fmt.Sprintf("waits for %s at place %d of %d", q.path, c.Place, len(q.all))
		if held := q.heldBy(); held != "" {
			line += ", " + held
		}
		return line
	}
	return ""
}

// heldBy returns a text with the first holder and the number of others, or "" if there is none.
func (q lockQueue) heldBy() string {
	holders := q.holders()
	if len(holders) == 0 {
		return ""
	}
	text := "held by " + holders[0].name()
	if since := holders[0].HeldSince; !since.IsZero() {
		text += " since " + since.Local().Format(time.DateTime)
	}
	if more := len(holders) - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}
