package host_test

import (
	"fmt"
	"slices"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/gen/internal/counter"
)

// adder is an actor of this service:
//
//	service Counter {
//	  rpc Add(AddRequest) returns (google.protobuf.Empty);
//	  rpc Get(GetRequest) returns (Value);
//	  rpc Await(AwaitRequest) returns (Value);
//	}
//
// Package counter is its generated code. The fields need no mutex, because one goroutine at a
// time calls the methods.
type adder struct {
	n       int64
	waiting []waiter
}

// waiter is an Await that is not answered yet.
type waiter struct {
	atLeast int64
	reply   ask.Reply[*counter.Value]
}

// Add implements counter.CounterHandler.
func (a *adder) Add(_ ask.Recipient, msg *counter.AddRequest) {
	a.n += msg.GetN()
	a.waiting = slices.DeleteFunc(a.waiting, func(w waiter) bool {
		if a.n >= w.atLeast {
			w.reply.Answer(&counter.Value{N: a.n})
		}
		return a.n >= w.atLeast || !w.reply.Wanted() // Wanted is false if the future was cancelled
	})
}

// Get implements counter.CounterHandler. It answers at once.
func (a *adder) Get(_ ask.Recipient, _ *counter.GetRequest, reply ask.Reply[*counter.Value]) {
	reply.Answer(&counter.Value{N: a.n})
}

// Await implements counter.CounterHandler. It keeps the reply until the count is reached.
func (a *adder) Await(_ ask.Recipient, msg *counter.AwaitRequest, reply ask.Reply[*counter.Value]) {
	a.waiting = append(a.waiting, waiter{msg.GetAtLeast(), reply})
	a.Add(nil, &counter.AddRequest{}) // the count may be there already
}

// Receive implements host.Actor. A message of another service gets an error.
func (a *adder) Receive(from ask.Recipient, msg any) {
	if !counter.DispatchCounter(a, from, msg, from) {
		ask.ReplyTo[any](from).Refuse(fmt.Errorf("counter: %T is not a message of the service", msg))
	}
}

// Stopped implements host.Actor. It answers the requests that are open.
func (a *adder) Stopped(failure any) {
	for _, w := range a.waiting {
		w.reply.Refuse(fmt.Errorf("counter has stopped at %d", a.n))
	}
}

// Refuse implements host.Actor. It answers a request that arrives after the stop.
func (a *adder) Refuse(from ask.Recipient, _ any) {
	ask.ReplyTo[any](from).Refuse(fmt.Errorf("counter has stopped"))
}

// An actor from its service to its end.
func Example() {
	system := host.NewSystem(nil, nil)
	defer system.Close() // after its actors have stopped

	actor, err := system.Spawn("counter", func(*host.Ref) host.Actor { return &adder{} })
	if err != nil {
		panic(err)
	}
	ref := counter.CounterRef{To: actor} // what other goroutines and actors use
	ref.Add(&counter.AddRequest{N: 2})
	value, err := ref.Get(&counter.GetRequest{}).Result()
	fmt.Println(value.GetN(), err)

	ten := ref.Await(&counter.AwaitRequest{AtLeast: 10})
	never := ref.Await(&counter.AwaitRequest{AtLeast: 100})
	never.Cancel() // the next Add removes the request
	million := ref.Await(&counter.AwaitRequest{AtLeast: 1_000_000})
	ref.Add(&counter.AddRequest{N: 9})
	select {
	case <-ten.Done():
		value, err := ten.Result()
		fmt.Println(value.GetN(), err)
	case <-million.Done():
	}

	actor.Stop()
	_, err = million.Result()
	fmt.Println(err)
	_, err = ref.Get(&counter.GetRequest{}).Result()
	fmt.Println(err)
	// Output:
	// 2 <nil>
	// 11 <nil>
	// counter has stopped at 11
	// counter has stopped
}
