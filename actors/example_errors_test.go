package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// The examples of this file provoke each error of the package, and show how a program tells it from
// others. ErrInternal is left out, which reports a defect of the library, and ErrUnavailable, which
// reports a lasting error of ZooKeeper, such as an exceeded quota.

func ExampleErrNotAcquired() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	mu := locks.Mutex("/locks/orders")
	held, err := mu.Lock(ctx)
	check(err)
	_, err = mu.Lock(ctx, actors.Try())
	if errors.Is(err, actors.ErrNotAcquired) {
		fmt.Println("another holds the lock: do something else meanwhile")
	}
	check(held.Unlock(ctx))
	// Output: another holds the lock: do something else meanwhile
}

// The end of the context is an error of the context, and WithTimeout has an error of its own.
func ExampleErrTimedOut() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()

	mu := locks.Mutex("/locks/orders")
	held, err := mu.Lock(context.Background())
	check(err)
	_, err = mu.Lock(context.Background(), actors.WithTimeout(10*time.Millisecond))
	fmt.Println("WithTimeout:", errors.Is(err, actors.ErrTimedOut))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = mu.Lock(ctx)
	fmt.Println("context:", errors.Is(err, context.DeadlineExceeded))
	fmt.Println("ZooKeeper does not answer:", errors.Is(err, actors.ErrSuspended))
	check(held.Unlock(context.Background()))
	// Output:
	// WithTimeout: true
	// context: true
	// ZooKeeper does not answer: false
}

func ExampleErrCancelled() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	mu := locks.Mutex("/locks/orders")
	held, err := mu.Lock(ctx)
	check(err)
	pending := mu.Acquire(ctx)
	pending.Cancel()
	_, err = pending.Result()
	fmt.Println(errors.Is(err, actors.ErrCancelled))
	check(held.Unlock(ctx))
	// Output: true
}

// A holder whose session has ended stops its work, and queues again for a new grant.
func ExampleErrSessionLost() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	mu := locks.Mutex("/locks/orders")
	grant, err := mu.Lock(ctx)
	check(err)
	server.Expire(locks.Session().ID) // as after a long pause
	<-grant.Done()
	fmt.Println("lost:", errors.Is(grant.Err(), actors.ErrSessionLost) || errors.Is(grant.Err(), actors.ErrNodeDeleted))
	again, err := mu.Lock(ctx)
	check(err)
	fmt.Println("a greater token:", again.Token().Compare(grant.Token()) > 0)
	check(again.Unlock(ctx))
	// Output:
	// lost: true
	// a greater token: true
}

// A Try does not wait for a connection to ZooKeeper.
func ExampleErrSuspended() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	server.Halt() // nothing is served until Restart
	for s := range locks.Sessions(ctx) {
		if s.State != messages.SessionState_CONNECTED {
			break
		}
	}
	_, err := locks.Mutex("/locks/orders").Lock(ctx, actors.Try())
	fmt.Println("no connection:", errors.Is(err, actors.ErrSuspended))
	server.Restart()
	// Output: no connection: true
}

// An operator has deleted the holder's node by hand.
func ExampleErrNodeDeleted() {
	server := exampleServer()
	defer server.Close()
	locks, operator := exampleLocks(server), exampleLocks(server)
	defer locks.Close()
	defer operator.Close()
	ctx := context.Background()

	grant, err := locks.Mutex("/locks/orders").Lock(ctx, actors.Revocable())
	check(err)
	_, err = operator.Multi(ctx, &zk.DeleteRequest{Path: grant.Node(), Version: -1})
	check(err)
	<-grant.Done()
	fmt.Println(errors.Is(grant.Err(), actors.ErrNodeDeleted))
	// Output: true
}

func ExampleErrClosed() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	check(locks.Close())

	_, err := locks.Mutex("/locks/orders").Lock(context.Background())
	fmt.Println(errors.Is(err, actors.ErrClosed))
	// Output: true
}

func ExampleErrNotHeld() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	grant, err := locks.Mutex("/locks/orders").Lock(ctx)
	check(err)
	check(grant.Unlock(ctx))
	fmt.Println("a second release:", grant.Unlock(ctx))
	// Output: a second release: grant is not held: /locks/orders was released before
}

func ExampleErrReleased() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	grant, err := locks.Mutex("/locks/orders").Lock(ctx)
	check(err)
	work := grant.Context(ctx)
	check(grant.Unlock(ctx))
	fmt.Println(errors.Is(context.Cause(work), actors.ErrReleased))
	// Output: true
}

func ExampleErrInvalid() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()

	_, err := locks.Mutex("locks/orders").Lock(context.Background())
	fmt.Println(err)
	// Output: invalid request: lock path "locks/orders" must begin with /
}

// One path has one recipe.
func ExampleErrInvalid_twoRecipes() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	grant, err := locks.Mutex("/locks/orders").Lock(ctx)
	check(err)
	_, err = locks.Semaphore("/locks/orders", 3).Lock(ctx)
	fmt.Println(err)
	check(grant.Unlock(ctx))
	// Output: invalid request: lock path "/locks/orders": it is in use as a mutex, and asked for as a semaphore of 3: give each of them a path of its own
}

// Another identity owns the lock's directory.
func ExampleErrNoAuth() {
	server := exampleServer()
	defer server.Close()
	ctx := context.Background()
	owner, err := actors.Connect(ctx, server.Addr(), actors.Config{
		Auth: []zkbridge.Auth{{Scheme: "digest", Credential: "billing:secret"}}, ACL: zkbridge.CreatorAll()})
	check(err)
	defer owner.Close()
	other := exampleLocks(server)
	defer other.Close()

	grant, err := owner.Mutex("/orders").Lock(ctx)
	check(err)
	_, err = other.Mutex("/orders").Lock(ctx)
	fmt.Println(errors.Is(err, actors.ErrNoAuth))
	check(grant.Unlock(ctx))
	// Output: true
}

// Requests over a limit of Config fail at once.
func ExampleErrLimit() {
	server := exampleServer()
	defer server.Close()
	ctx := context.Background()
	locks, err := actors.Connect(ctx, server.Addr(), actors.Config{MaxRequestsPerLock: 1})
	check(err)
	defer locks.Close()

	mu := locks.Mutex("/locks/orders")
	grant, err := mu.Lock(ctx)
	check(err)
	_, err = mu.Lock(ctx)
	fmt.Println(errors.Is(err, actors.ErrLimit))
	check(grant.Unlock(ctx))
	// Output: true
}

// A reader cannot become a writer.
func ExampleErrDeadlock() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	stock, me := locks.RWMutex("/locks/stock"), actors.WithOwner("billing")
	reader, err := stock.Read().Lock(ctx, me)
	check(err)
	_, err = stock.Write().Lock(ctx, me)
	fmt.Println(errors.Is(err, actors.ErrDeadlock))
	check(reader.Unlock(ctx))
	// Output: true
}

// A holder keeps the directory while the last of its sequence numbers are used up.
func ExampleErrSequenceExhausted() {
	server := exampleServer()
	defer server.Close()
	ctx := context.Background()
	// A request waits for five ticks for the holders to end. A tick is a second, or the IdleTimeout if that is shorter.
	locks, err := actors.Connect(ctx, server.Addr(), actors.Config{IdleTimeout: 100 * time.Millisecond})
	check(err)
	defer locks.Close()

	stock := locks.Mutex("/stock")
	first, err := stock.Lock(ctx)
	check(err)
	server.SetCreateCount("/stock", math.MaxInt32) // after two thousand million requests
	_, err = stock.Lock(ctx)
	fmt.Println(errors.Is(err, actors.ErrSequenceExhausted))

	check(first.Unlock(ctx))
	again, err := stock.Lock(ctx) // deletes the directory
	check(err)
	fmt.Println(strings.HasSuffix(again.Node(), "-lock-0000000000"))
	check(again.Unlock(ctx))
	// Output:
	// true
	// true
}

// A server grants session timeouts within its own limits.
func ExampleConnect_sessionTimeout() {
	server, err := embedded.Start(embedded.ServerConfig{TickTime: 2 * time.Second})
	check(err)
	defer server.Close()

	_, err = actors.Connect(context.Background(), server.Addr(), actors.Config{SessionTimeout: time.Hour})
	fmt.Println(errors.Is(err, zkbridge.ErrSessionTimeout))
	fmt.Println(err)
	// Output:
	// true
	// zkbridge: server does not grant the session timeout: asked for 1h0m0s, granted 40s, which the server's minSessionTimeout and maxSessionTimeout allow
}
