//go:build unix

// Command shards has consumers that come and go share the shards of a queue, and shows that each
// message has its effect once:
//
//	go run ./examples/shards [-zk SERVERS] [-shards N]
//
// Each consumer is a process of its own. One is killed, one is paused while a write of it is on its way,
// and one leaves. The program prints who leads each shard as a table with a row after each of these. The
// effects are in a table outside of ZooKeeper, which refuses the writes of earlier terms by their tokens.
// Without -zk it starts the embedded server.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func main() {
	var c consumer
	flag.StringVar(&c.servers, "zk", "", "the ZooKeeper `servers`, as in zk1:2181,zk2:2181 (default: an embedded one)")
	flag.DurationVar(&c.session, "session", 4*time.Second, "the session timeout, with -zk; 4s is the least that servers grant by default")
	flag.IntVar(&c.shards, "shards", 12, "how `many` shards the queue has")
	flag.StringVar(&c.name, consumerFlag, "", "used by the program itself: be the consumer with this name")
	flag.StringVar(&c.path, "path", "", "used by the program itself: the path of the group")
	flag.StringVar(&c.table, "table", "", "used by the program itself: the address of the table")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if c.name != "" {
		err = c.run(ctx)
	} else {
		err = run(ctx, c, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shards:", err)
		os.Exit(1)
	}
}

// run starts the table, and then consumers, which it has join, fail and leave.
func run(ctx context.Context, c consumer, out io.Writer) error {
	if c.shards < 4 {
		return fmt.Errorf("-shards %d: it must be at least 4", c.shards)
	}
	if c.servers == "" {
		server, err := embedded.Start(embedded.ServerConfig{TickTime: 200 * time.Millisecond})
		if err != nil {
			return err
		}
		defer server.Close()
		c.servers, c.session = server.Addr(), 3*time.Second
	}
	locks, err := actors.Connect(ctx, c.servers, actors.Config{SessionTimeout: c.session})
	if err != nil {
		return err
	}
	defer locks.Close()
	table, err := serveTable(c.shards)
	if err != nil {
		return err
	}
	defer table.close()
	c.table, c.path = table.addr(), "/shards/orders-"+rand.Text()[:8] // used by no other run
	watching, stop := context.WithCancel(ctx)
	defer stop()
	// The program itself does not join: everybody can observe a group.
	s := &story{ctx: ctx, group: locks.Partitions(c.path, c.shards).Observe(watching), consumer: c, table: table, processes: map[string]*consumerProcess{}, out: out}
	defer s.end()
	return s.tell()
}

// story has the consumers, and prints a row whenever the shards have settled.
type story struct {
	ctx       context.Context
	group     <-chan actors.PartitionGroup
	consumer  consumer // what all consumers have in common
	table     *table
	processes map[string]*consumerProcess
	out       io.Writer
	before    string // the row before
}

func (s *story) tell() error {
	s.heading()
	for i, name := range []string{"ann", "bob", "cat"} {
		if err := s.join(name, []string{"ann", "bob", "cat"}[:i+1]...); err != nil {
			return err
		}
	}
	if err := s.signal("bob", syscall.SIGKILL, "bob is killed", "ann", "cat"); err != nil {
		return err
	}
	if err := s.pause("cat", "ann"); err != nil {
		return err
	}
	if err := s.join("dan", "ann", "cat", "dan"); err != nil {
		return err
	}
	if err := s.signal("ann", syscall.SIGTERM, "ann leaves", "cat", "dan"); err != nil {
		return err
	}
	messages, err := s.table.check()
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "each of %d messages has had its effect once\n", messages)
	return nil
}

// join starts a consumer.
func (s *story) join(name string, settled ...string) error {
	c := s.consumer
	c.name = name
	began := time.Now()
	p, err := start(s.ctx, c)
	if err != nil {
		return err
	}
	s.processes[name] = p
	return s.settle(name+" joins", began, settled...)
}

// signal sends a consumer a signal, and waits until the others have its shards.
func (s *story) signal(name string, signal syscall.Signal, title string, settled ...string) error {
	began := time.Now()
	if err := s.processes[name].signal(signal); err != nil {
		return err
	}
	return s.settle(title, began, settled...)
}

// pause pauses a consumer while a write of it is on its way, until another consumer has its shards.
func (s *story) pause(name, other string) error {
	late := s.table.delay(name)
	defer late.arrive()
	select {
	case <-late.sent:
	case <-s.ctx.Done():
		return fmt.Errorf("%s writes nothing: %w", name, context.Cause(s.ctx))
	}
	if err := s.signal(name, syscall.SIGSTOP, name+" is paused", other); err != nil {
		return err
	}
	late.arrive()
	refused, err := late.outcome(s.ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "  a write of %s arrives now, and the table refuses it: %v\n", name, refused)
	return s.signal(name, syscall.SIGCONT, name+" goes on", other, name)
}

// end ends the consumers that still run.
func (s *story) end() {
	for _, p := range s.processes {
		p.kill()
	}
}
