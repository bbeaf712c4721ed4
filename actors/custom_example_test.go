package actors_test

import (
	"context"
	"fmt"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// A reader or a writer of a row of a table has an intention lock on the whole table.
const (
	IS queue.Kind = iota // intends to read rows
	IX                   // intends to write rows
	S                    // reads the table
	X                    // writes the table
)

var tableKinds = []string{IS: "IS", IX: "IX", S: "S", X: "X"}

func tableLock() queue.Rule {
	return queue.Rule{
		Permits: 1,
		BlockedBy: []queue.KindSet{
			IS: queue.Kinds(X),
			IX: queue.Kinds(S, X),
			S:  queue.Kinds(IX, X),
			X:  queue.Kinds(IS, IX, S, X),
		},
		Markers: []string{IS: "-is-", IX: "-ix-", S: "-s-", X: "-x-"},
		Reenter: []queue.KindSet{
			IS: queue.Kinds(IS),
			IX: queue.Kinds(IX),
			S:  queue.Kinds(S, X), // X may become S
			X:  queue.Kinds(X),
		},
	}
}

// The locks that databases have on tables.
func ExampleLocks_Custom() {
	server, err := embedded.Start(embedded.ServerConfig{})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	ctx := context.Background()
	locks, err := actors.Connect(ctx, server.Addr(), actors.Config{})
	if err != nil {
		panic(err)
	}
	defer locks.Close()

	table := locks.Custom("/tables/orders", "table lock", tableLock(), tableKinds...)
	row, err := table.Kind("IX").Lock(ctx)
	if err != nil {
		panic(err)
	}
	for _, kind := range tableKinds {
		grant, err := table.Kind(kind).Lock(ctx, actors.Try())
		if err != nil {
			fmt.Println(kind, "has to wait")
			continue
		}
		fmt.Println(kind, "is granted beside IX")
		grant.Unlock(ctx)
	}
	row.Unlock(ctx)
	// Output:
	// IS is granted beside IX
	// IX is granted beside IX
	// S has to wait
	// X has to wait
}
