package actors_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// A holder that hangs does not keep the lock for ever.
func ExampleHoldAtMost() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	g, err := locks.Mutex("/locks/report").Lock(ctx, actors.HoldAtMost(200*time.Millisecond))
	check(err)
	<-g.Revoked()
	fmt.Println("asked to release")
	<-g.Done()
	fmt.Println("over:", errors.Is(g.Err(), actors.ErrHoldExpired))
	// Output:
	// asked to release
	// over: true
}

// A service that ends lets its holders finish, and begins nothing new.
func ExampleLocks_Drain() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	mu := locks.Mutex("/locks/import")
	g, err := mu.Lock(ctx)
	check(err)
	waiting := mu.Acquire(ctx)
	go func() {
		_, err := waiting.Result()
		fmt.Println("waiter:", errors.Is(err, actors.ErrDraining))
		g.Release() // the holder has ended its work
	}()
	fmt.Println("drained:", locks.Drain(ctx))
	fmt.Println("closed:", locks.Close())
	// Output:
	// waiter: true
	// drained: <nil>
	// closed: <nil>
}

// Either of two machines will do.
func ExampleFirst() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	busy, err := locks.Mutex("/machines/1").Lock(ctx)
	check(err)
	defer busy.Release()
	g, err := actors.First(ctx, locks.Mutex("/machines/1").Acquire(ctx), locks.Mutex("/machines/2").Acquire(ctx))
	check(err)
	defer g.Release()
	fmt.Println(g.Path())
	// Output: /machines/2
}

// The program lists its own open requests: held and waiting ones.
func ExampleLocks_OpenRequests() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	mu := locks.Mutex("/locks/orders")
	g, err := mu.Lock(ctx, actors.WithOwner("importer"))
	check(err)
	waiting := mu.Acquire(ctx, actors.WithOwner("reporter"))
	for _, r := range locks.OpenRequests() {
		fmt.Println(r.Path, r.Recipe, r.Owner, r.State)
	}
	fmt.Println("held here:", mu.HeldHere(), "by the reporter:", mu.HeldHere("reporter"))
	waiting.Cancel()
	g.Release()
	// Output:
	// /locks/orders mutex importer held
	// /locks/orders mutex reporter waiting
	// held here: true by the reporter: false
}

// The counts of a service's own health page.
func ExampleLocks_Stats() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	mu := locks.Mutex("/locks/orders")
	g, err := mu.Lock(ctx)
	check(err)
	_, err = mu.Lock(ctx, actors.Try())
	stats := locks.Stats()
	fmt.Println("held", stats.Held, "refused", stats.Refused[actors.ErrNotAcquired], "as", err)
	fmt.Println("health:", locks.Health(ctx))
	g.Release()
	// Output:
	// held 1 refused 1 as lock is not free: /locks/orders
	// health: <nil>
}

// A request that would rather fail than queue again after a loss of the session.
func ExampleFailOnSessionLoss() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	mu := locks.Mutex("/locks/orders")
	g, err := mu.Lock(ctx)
	check(err)
	waiting := mu.Acquire(ctx, actors.FailOnSessionLoss())
	server.Expire(locks.Session().ID)
	_, err = waiting.Result()
	fmt.Println("waiter:", errors.Is(err, actors.ErrSessionLost))
	<-g.Done()
	fmt.Println("holder:", g.Err() != nil)
	// Output:
	// waiter: true
	// holder: true
}
