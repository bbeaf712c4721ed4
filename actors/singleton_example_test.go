package actors_test

import (
	"context"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
)

// An actor has a child while it leads. The child here stops its parent, which ends the campaign.
func ExampleElection_Singleton() {
	server := exampleServer()
	defer server.Close()
	system := actor.NewActorSystem(locktest.WithoutLog...)
	defer system.Shutdown()
	locks, err := actors.Connect(context.Background(), server.Addr(), actors.Config{System: system})
	check(err)
	defer locks.Close()

	done := make(chan struct{})
	singleton := locks.Election("/elections/scheduler").Singleton(func(term *actors.SingletonTerm) *actor.Props {
		return actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *actor.Started:
				fmt.Println("the scheduler runs here, with a token:", term.Token().Czxid > 0, "and a term:", term.Err() == nil)
				ctx.Stop(ctx.Parent())
			case *actor.Stopped:
				fmt.Println("the scheduler has stopped")
				close(done)
			}
		})
	})
	system.Root.Spawn(singleton)
	<-done
	// Output:
	// the scheduler runs here, with a token: true and a term: true
	// the scheduler has stopped
}
