package actors_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/actorlock/actorlock/actors"
)

// A participant leads twice. The body of the loop is the work of a term, and leaving it resigns.
func ExampleElection_Campaign() {
	locks, end := exampleOpen()
	defer end()
	ctx := context.Background()

	election := locks.Election("/elections/scheduler", actors.AsID("node-1"))
	for term, err := range election.Campaign(ctx) {
		check(err) // the campaign has ended
		leader, err := election.Leader(ctx)
		fmt.Printf("term %d: %s leads %v\n", term.Number(), leader.Data, err)
		fmt.Println("  its work may go on:", term.Context().Err() == nil, "with a token:", term.Token() == leader.Token)
		if term.Number() == 2 {
			break
		}
	}
	_, err := election.Leader(ctx)
	fmt.Println(err)
	// Output:
	// term 1: node-1 leads <nil>
	//   its work may go on: true with a token: true
	// term 2: node-1 leads <nil>
	//   its work may go on: true with a token: true
	// /elections/scheduler: there is no leader
}

// A program that does not take part asks for the leader.
func ExampleElection_Leader() {
	locks, end := exampleOpen()
	defer end()
	ctx := context.Background()

	election := locks.Election("/elections/scheduler")
	if _, err := election.Leader(ctx); errors.Is(err, actors.ErrNoLeader) {
		fmt.Println("no leader yet")
	}
	for _, err := range locks.Election("/elections/scheduler", actors.AsID("node-1")).Campaign(ctx) {
		check(err)
		leader, err := election.Leader(ctx)
		check(err)
		fmt.Printf("%s leads\n", leader.Data)
		break
	}
	// Output:
	// no leader yet
	// node-1 leads
}

// A program follows the leader without taking part.
func ExampleElection_Observe() {
	locks, end := exampleOpen()
	defer end()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	go func() {
		for term, err := range locks.Election("/elections/scheduler", actors.AsID("node-1")).Campaign(ctx) {
			if err != nil {
				return
			}
			<-term.Context().Done()
		}
	}()
	for q := range locks.Election("/elections/scheduler").Observe(ctx) {
		if q.Err == nil && len(q.Participants) > 0 {
			fmt.Printf("%s leads\n", q.Participants[0].Data)
			break
		}
	}
	// Output: node-1 leads
}
