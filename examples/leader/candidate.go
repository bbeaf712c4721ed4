//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/examples/internal/console"
)

// participant is one process of the election.
type participant struct {
	servers, path, id string
	session           time.Duration
	child             bool
}

// run campaigns until ctx ends. A full output delays neither a term nor its end.
func (c *participant) run(ctx context.Context, out io.Writer) error {
	log := console.Logger(out, "leader", slog.LevelInfo)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.child {
		go func() {
			io.Copy(io.Discard, os.Stdin) // until the program that has started this one has ended
			cancel()
		}()
	}
	config := actors.Config{SessionTimeout: c.session}
	if c.child {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	locks, err := actors.Connect(ctx, c.servers, config)
	if err != nil {
		return err
	}
	defer locks.Close()
	election := locks.Election(c.path, actors.AsID(c.id))
	if !c.child {
		go follow(election.Observe(ctx), log)
	}
	for term, err := range election.Campaign(ctx) {
		if err != nil {
			if ctx.Err() != nil { // a signal
				err = nil
			}
			return err
		}
		log.Info(fmt.Sprint(leads, term.Token()))
		work(term.Context())
		log.Info(fmt.Sprint(isOver, context.Cause(term.Context())))
	}
	return nil
}

// follow prints the leader and the waiters, at each change of the queue.
func follow(queues <-chan actors.Queue, log *slog.Logger) {
	for q := range queues {
		var ids []string
		for _, p := range q.Participants {
			ids = append(ids, string(p.Data))
		}
		switch {
		case q.Err != nil:
			log.Error(fmt.Sprint("the queue cannot be read: ", q.Err))
		case len(ids) > 0:
			log.Info(fmt.Sprintf("%s leads, and %d wait %v", ids[0], len(ids)-1, ids[1:]))
		}
	}
}

// These words are in the lines of a candidate.
const (
	leads  = "leads with token "
	isOver = "its term is over: "
)

// work stands for the work of a leader. It returns when the term is over.
func work(ctx context.Context) { <-ctx.Done() }
