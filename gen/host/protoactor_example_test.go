package host_test

import (
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/gen/internal/counter"
)

// plainCounter is an actor of protoactor that handles the messages of service Counter. It must not
// leave the sender of an open request without an answer: protoactor drops what it has queued when
// the actor stops.
type plainCounter struct {
	counter.IgnoreCounter[actor.Context] // it has no Await
	n                                    int64
}

// Receive implements actor.Actor. A reference sends an envelope: the message with its sender.
func (p *plainCounter) Receive(ctx actor.Context) {
	if e, is := ctx.Message().(ask.Envelope); is {
		from, msg := e.Unwrap()
		counter.DispatchCounter(p, ctx, msg, from)
		return
	}
	counter.DispatchCounter(p, ctx, ctx.Message(), nil) // one-way, or of a system's own messages
}

// Add implements counter.CounterHandler.
func (p *plainCounter) Add(_ actor.Context, msg *counter.AddRequest) { p.n += msg.GetN() }

// Get implements counter.CounterHandler.
func (p *plainCounter) Get(_ actor.Context, _ *counter.GetRequest, reply ask.Reply[*counter.Value]) {
	reply.Answer(&counter.Value{N: p.n})
}

// An actor of protoactor handles a generated service, and a reference reaches it by its PID.
func Example_plainActor() {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	defer system.Shutdown()
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &plainCounter{} }))

	ref := counter.CounterRef{To: host.Sender{System: system, PID: pid}}
	ref.Add(&counter.AddRequest{N: 2})
	value, err := ref.Get(&counter.GetRequest{}).Result()
	fmt.Println(value.GetN(), err)
	// Output: 2 <nil>
}
