//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/rpc"
	"os"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// consumer is a consumer of the queue: a process.
type consumer struct {
	servers string
	session time.Duration
	path    string // of the group
	shards  int
	name    string
	table   string // the address
	rows    *rpc.Client
}

// run consumes until ctx or the standard input ends.
func (c *consumer) run(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // it ends with the program that has started it
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	if c.rows, err = rpc.Dial("tcp", c.table); err != nil {
		return err
	}
	defer c.rows.Close()
	locks, err := actors.Connect(ctx, c.servers, actors.Config{SessionTimeout: c.session, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer locks.Close()
	err = locks.Partitions(c.path, c.shards).Join(ctx, []byte(c.name), c.consume)
	if ctx.Err() != nil {
		return nil // a clean stop: its shards are given away
	}
	return err
}

// consume handles the messages of a shard, one after the other, while the term lasts. It begins behind the
// last one that had its effect. To open the row has the table refuse all earlier tokens.
func (c *consumer) consume(term *actors.PartitionTerm) {
	request := ConsumerRequest{Consumer: c.name, Shard: term.Partition(), Token: term.Token().String()}
	var next int
	err := c.rows.Call("Table.Open", request, &next)
	for err == nil && term.Err() == nil { // asked before each message: the process may have been paused
		request.Amount = message(request.Shard, next)
		select { // the work of a message
		case <-time.After(20 * time.Millisecond):
		case <-term.Context().Done():
			return
		}
		err = c.rows.Call("Table.Add", request, &next)
	}
	if err != nil && term.Err() == nil {
		fmt.Fprintln(os.Stderr, "shards:", c.name, "resigns:", err)
	}
}

// message returns a message of a shard's queue: an amount that is to be added to the shard's total.
func message(shard, number int) int { return 1000*shard + number }
