package actors_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// The examples run on an embedded server; a service names the servers of its ensemble instead.
func exampleServer() *embedded.Server {
	server, err := embedded.Start(embedded.ServerConfig{})
	check(err)
	return server
}

func exampleLocks(server *embedded.Server) *actors.Locks {
	locks, err := actors.Connect(context.Background(), server.Addr(), actors.Config{})
	check(err)
	return locks
}

// exampleOpen connects to a server of its own, until the returned function is called.
func exampleOpen() (locks *actors.Locks, end func()) {
	server := exampleServer()
	locks = exampleLocks(server)
	return locks, func() { locks.Close(); server.Close() }
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// exampleRead returns the data of a node, read by another client.
func exampleRead(server *embedded.Server, path string) []byte {
	conn, _, err := zk.Connect([]string{server.Addr()}, time.Minute, zk.WithLogInfo(false))
	check(err)
	defer conn.Close()
	data, _, err := conn.Get(path)
	check(err)
	return data
}

// Select on a lock beside other channels.
func Example() {
	server := exampleServer()
	defer server.Close()
	locks, err := actors.Connect(context.Background(), server.Addr(), actors.Config{})
	check(err)
	defer locks.Close()
	ctx, shutdown := context.Background(), make(chan struct{})

	pending := locks.Mutex("/locks/orders").Acquire(ctx) // never blocks
	select {
	case <-pending.Done():
	case <-shutdown:
		pending.Cancel() // leaves the queue, also if a grant is on its way
	}
	grant, err := pending.Result()
	check(err)
	defer func() { check(grant.Unlock(ctx)) }()
	work := grant.Context(ctx) // ends when the lock is lost
	fmt.Println(grant.Path(), work.Err(), len(grant.Token().String()))
	// Output: /locks/orders <nil> 42
}

func ExampleLocks_Mutex() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	mu := locks.Mutex("/locks/orders")
	grant, err := mu.Lock(ctx)
	check(err)
	fmt.Println("held:", grant.Err() == nil)
	check(grant.Unlock(ctx))
	fmt.Println("after Unlock:", grant.Err())
	// Output:
	// held: true
	// after Unlock: grant was released
}

// A process that holds a lock, and another that waits for it.
func ExampleLocks_Mutex_twoProcesses() {
	server := exampleServer()
	defer server.Close()
	first, second := exampleLocks(server), exampleLocks(server)
	defer first.Close()
	defer second.Close()
	ctx := context.Background()

	held, err := first.Mutex("/locks/orders").Lock(ctx)
	check(err)
	pending := second.Mutex("/locks/orders").Acquire(ctx)
	check(held.Unlock(ctx))
	next, err := pending.Wait(ctx)
	check(err)
	fmt.Println("the second has the greater token:", next.Token().Compare(held.Token()) > 0)
	check(next.Unlock(ctx))
	// Output: the second has the greater token: true
}

func ExampleLocks_RWMutex() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	stock := locks.RWMutex("/locks/stock")
	one, err := stock.Read().Lock(ctx)
	check(err)
	two, err := stock.Read().Lock(ctx)
	check(err)
	_, err = stock.Write().Lock(ctx, actors.Try())
	fmt.Println("two readers hold, so that a writer may not:", errors.Is(err, actors.ErrNotAcquired))
	check(one.Unlock(ctx))
	check(two.Unlock(ctx))
	// Output: two readers hold, so that a writer may not: true
}

// A writer becomes a reader without letting another writer in between.
func ExampleLocks_RWMutex_downgrade() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	stock := locks.RWMutex("/locks/stock")
	me := actors.WithOwner("billing")
	writer, err := stock.Write().Lock(ctx, me)
	check(err)
	reader, err := stock.Read().Lock(ctx, me)
	check(err)
	check(writer.Unlock(ctx))
	fmt.Println("the reader has the writer's token:", reader.Token() == writer.Token())
	check(reader.Unlock(ctx))
	// Output: the reader has the writer's token: true
}

func ExampleLocks_Semaphore() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	tapes := locks.Semaphore("/locks/tapes", 3)
	grant, err := tapes.Lock(ctx, actors.Permits(2)) // both or none
	check(err)
	left, err := tapes.Remaining(ctx)
	check(err)
	fmt.Println("permits left:", left)
	check(grant.Unlock(ctx))
	// Output: permits left: 1
}

func ExampleLocks_SemaphoreMutex() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	mu, me := locks.SemaphoreMutex("/locks/orders"), actors.WithOwner("billing")
	grant, err := mu.Lock(ctx, me)
	check(err)
	_, err = mu.Lock(ctx, me) // not re-entrant
	fmt.Println("would wait for itself:", errors.Is(err, actors.ErrDeadlock))
	check(grant.Unlock(ctx))
	// Output: would wait for itself: true
}

// A transfer locks both accounts. Two transfers cannot deadlock, in whatever order each of them
// names the accounts.
func ExampleLocks_MultiLock() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	transfer := func(from, to string) error {
		both, err := locks.MultiLock(locks.Mutex("/accounts/"+from), locks.Mutex("/accounts/"+to)).Lock(ctx)
		if err != nil {
			return err
		}
		return both.Unlock(ctx)
	}
	done := make(chan error, 2)
	go func() { done <- transfer("ann", "bob") }()
	go func() { done <- transfer("bob", "ann") }()
	fmt.Println(<-done, <-done)
	// Output: <nil> <nil>
}
