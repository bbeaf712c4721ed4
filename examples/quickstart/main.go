// Command quickstart shows the features of a lock, one after the other:
//
//	go run ./examples/quickstart [-zk SERVERS]
//
// Without -zk it starts the embedded server.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func main() {
	servers := flag.String("zk", "", "the ZooKeeper `servers`, as in zk1:2181,zk2:2181 (default: an embedded one)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *servers, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, servers string, out io.Writer) error {
	if servers == "" {
		server, err := embedded.Start(embedded.ServerConfig{})
		if err != nil {
			return err
		}
		defer server.Close()
		servers = server.Addr()
	}
	locks, err := actors.Connect(ctx, servers, actors.Config{})
	if err != nil {
		return err
	}
	defer locks.Close()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute) // a second is enough on a machine without other work
	defer cancel()
	mu := locks.Mutex("/quickstart/orders-" + rand.Text()[:8]) // used by no other run
	d := &demo{ctx, servers, mu, out}
	for _, part := range []func() error{d.turns, d.selecting, d.timeouts, d.reentry, d.loss} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// demo has the parts of the program.
type demo struct {
	ctx     context.Context
	servers string
	mu      *actors.Mutex
	out     io.Writer
}

// turns shows owners that hold the lock one after the other, each with a greater token.
func (d *demo) turns() error {
	fmt.Fprintf(d.out, "Three workers take turns on %s:\n", d.mu.Path())
	var last actors.Token // the lock protects it
	var group errgroup.Group
	for worker := range 3 {
		group.Go(func() error {
			for range 2 {
				grant, err := d.mu.Lock(d.ctx)
				if err != nil {
					return err
				}
				fmt.Fprintf(d.out, "  worker %d holds the lock, token %v\n", worker+1, grant.Token())
				if grant.Token().Compare(last) <= 0 {
					return fmt.Errorf("token %v comes after %v", grant.Token(), last)
				}
				last = grant.Token()
				if err := grant.Unlock(d.ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// selecting shows a select on a future and on other channels.
func (d *demo) selecting() error {
	pending := d.mu.Acquire(d.ctx) // does not block
	select {
	case <-pending.Done():
	case <-d.ctx.Done():
	}
	grant, err := pending.Result()
	if err != nil {
		return err
	}
	defer grant.Release()
	fmt.Fprintln(d.out, "The lock was free: its future came first")

	pending = d.mu.Acquire(d.ctx)
	select {
	case <-pending.Done():
		_, err := pending.Result()
		return fmt.Errorf("the lock was granted twice, or %w", err)
	case <-time.After(100 * time.Millisecond):
		pending.Cancel() // leaves the queue, also if a grant is on its way
	}
	fmt.Fprintln(d.out, "The lock was taken: a timer came first")
	return nil
}

// timeouts shows the ways in which a request ends without the lock.
func (d *demo) timeouts() error {
	fmt.Fprintln(d.out, "While another owner holds the lock:")
	holder, err := d.mu.Lock(d.ctx)
	if err != nil {
		return err
	}
	defer holder.Release()

	_, err = d.mu.Lock(d.ctx, actors.Try())
	if err := d.expect(err, actors.ErrNotAcquired); err != nil {
		return err
	}
	_, err = d.mu.Lock(d.ctx, actors.WithTimeout(100*time.Millisecond))
	if err := d.expect(err, actors.ErrTimedOut); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(d.ctx, 100*time.Millisecond)
	defer cancel()
	_, err = d.mu.Lock(limited)
	if err := d.expect(err, context.DeadlineExceeded); err != nil {
		return err
	}
	pending := d.mu.Acquire(d.ctx)
	pending.Cancel()
	_, err = pending.Result()
	return d.expect(err, actors.ErrCancelled)
}

func (d *demo) expect(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("got %v instead of %w", err, want)
	}
	fmt.Fprintf(d.out, "  %v\n", err)
	return nil
}

// reentry shows that an owner, given by its name and not by the goroutine, can hold the lock twice.
func (d *demo) reentry() error {
	outer, err := d.mu.Lock(d.ctx, actors.WithOwner("billing"))
	if err != nil {
		return err
	}
	inner, err := d.mu.Lock(d.ctx, actors.WithOwner("billing"))
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "Owner billing holds the lock twice, tokens %v and %v\n", outer.Token(), inner.Token())
	if err := inner.Unlock(d.ctx); err != nil {
		return err
	}
	return outer.Unlock(d.ctx)
}

// loss shows that a holder learns of the end of its session, and that a resource refuses its late
// write by the token.
func (d *demo) loss() (err error) {
	fmt.Fprintln(d.out, "Another process takes the lock, and its session ends:")
	other, err := actors.Connect(d.ctx, d.servers, actors.Config{})
	if err != nil {
		return err
	}
	defer other.Close()
	lost, err := other.Mutex(d.mu.Path()).Lock(d.ctx)
	if err != nil {
		return err
	}
	work := lost.Context(d.ctx) // for the work that the lock protects
	other.Close()
	<-lost.Done()
	<-work.Done()
	fmt.Fprintln(d.out, "  its grant is over:", lost.Err())

	grant, err := d.mu.Lock(d.ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, grant.Unlock(d.ctx)) }()
	var stock store
	if err := stock.write(grant.Token(), "41 left"); err != nil {
		return err
	}
	fmt.Fprintf(d.out, "  the next holder writes %q with token %v\n", stock.value, grant.Token())
	late := stock.write(lost.Token(), "42 left")
	if late == nil {
		return errors.New("a late write was accepted")
	}
	fmt.Fprintln(d.out, "  a late write of the first is refused:", late)
	return nil
}

// store is a resource that refuses a token that is smaller than an earlier one.
type store struct {
	newest actors.Token
	value  string
}

func (s *store) write(token actors.Token, value string) error {
	if token.Compare(s.newest) < 0 {
		return fmt.Errorf("token %v is older than %v", token, s.newest)
	}
	s.newest, s.value = token, value
	return nil
}
