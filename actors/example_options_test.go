package actors_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// An owner that holds the lock is granted it again; the lock is free after the last release.
func ExampleWithOwner() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	mu, me := locks.Mutex("/locks/orders"), actors.WithOwner("billing")
	outer, err := mu.Lock(ctx, me)
	check(err)
	inner, err := mu.Lock(ctx, me)
	check(err)
	fmt.Println("one token:", inner.Token() == outer.Token())
	check(inner.Unlock(ctx))
	_, err = mu.Lock(ctx, actors.WithOwner("shipping"), actors.Try())
	fmt.Println("free for another owner:", err == nil)
	check(outer.Unlock(ctx))
	// Output:
	// one token: true
	// free for another owner: false
}

func ExampleWithTimeout() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	mu := locks.Mutex("/locks/orders")
	held, err := mu.Lock(ctx)
	check(err)
	_, err = mu.Lock(ctx, actors.WithTimeout(10*time.Millisecond))
	fmt.Println(err)
	check(held.Unlock(ctx))
	// Output: timed out waiting for the lock: /locks/orders: after 10ms
}

func ExampleTry() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	mu := locks.Mutex("/locks/orders")
	held, err := mu.Lock(ctx)
	check(err)
	_, err = mu.Lock(ctx, actors.Try())
	fmt.Println(err)
	check(held.Unlock(ctx))
	// Output: lock is not free: /locks/orders
}

// The data of a holder's node can be read by every client of the ensemble.
func ExampleWithData() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	grant, err := locks.Mutex("/locks/orders").Lock(ctx, actors.WithData([]byte("batch 41")))
	check(err)
	fmt.Printf("%s\n", exampleRead(server, grant.Node()))
	check(grant.Unlock(ctx))
	// Output: batch 41
}

// An operator, or another service, asks the holder to release.
func ExampleRevocable() {
	server := exampleServer()
	defer server.Close()
	service, operator := exampleLocks(server), exampleLocks(server)
	defer service.Close()
	defer operator.Close()
	ctx := context.Background()

	grant, err := service.Mutex("/locks/orders").Lock(ctx, actors.Revocable())
	check(err)
	go func() {
		<-grant.Revoked()
		// End the work here.
		grant.Release()
	}()
	broken, err := operator.Revoke(ctx, grant.Node(), time.Minute)
	fmt.Println("the node had to be deleted:", broken, err)
	// Output: the node had to be deleted: false <nil>
}

func ExamplePermits() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	tapes := locks.Semaphore("/locks/tapes", 3)
	grant, err := tapes.Lock(ctx, actors.Permits(2))
	check(err)
	_, err = tapes.Lock(ctx, actors.Permits(2), actors.Try())
	fmt.Println("two more:", err == nil)
	check(grant.Unlock(ctx))
	// Output: two more: false
}

// The number of permits is in a node that processes can change while they use the semaphore.
func ExampleSharedPermits() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	count := locks.SharedCount("/config/tapes", 1)
	check(count.Set(ctx, 2))
	tapes := locks.Semaphore("/locks/tapes", 1, actors.SharedPermits("/config/tapes"))
	both, err := tapes.Lock(ctx, actors.Permits(2))
	check(err)
	fmt.Println("permits:", 2)
	check(both.Unlock(ctx))
	// Output: permits: 2
}

// The owners of a process pass one node on among themselves.
func ExampleLocalQueue() {
	server := exampleServer()
	defer server.Close()
	locks := exampleLocks(server)
	defer locks.Close()
	ctx := context.Background()

	mu := locks.Mutex("/locks/counter", actors.LocalQueue(actors.LocalQueueConfig{Time: time.Minute}))
	one, err := mu.Lock(ctx)
	check(err)
	next := mu.Acquire(ctx)
	check(one.Unlock(ctx))
	two, err := next.Wait(ctx)
	check(err)
	fmt.Println("one node:", one.Node() == two.Node())
	fmt.Println("the second has the greater token:", two.Token().Compare(one.Token()) > 0)
	check(two.Unlock(ctx))
	// Output:
	// one node: true
	// the second has the greater token: true
}

// The next holder waits after a holder that has not released.
func ExampleLockDelay() {
	server := exampleServer()
	defer server.Close()
	first, second := exampleLocks(server), exampleLocks(server)
	defer first.Close()
	defer second.Close()
	ctx := context.Background()

	delay := actors.LockDelay(30 * time.Second)
	_, err := first.Mutex("/locks/orders", delay).Lock(ctx)
	check(err)
	server.Expire(first.Session().ID) // as after a long pause
	_, err = second.Mutex("/locks/orders", delay).Lock(ctx, actors.WithTimeout(100*time.Millisecond))
	fmt.Println("delayed:", errors.Is(err, actors.ErrTimedOut))
	// Output: delayed: true
}
