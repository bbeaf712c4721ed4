//go:build !compare

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/actorlock/actorlock/actors"
)

// joinActorlock asks the Err of each term before each effect, as the documentation says.
var joinActorlock joinGroup = func(ctx context.Context, s groupSpec, l *termLedger, failed func(error)) (leave func() error, err error) {
	locks, err := actors.Connect(ctx, s.addr, actors.Config{SessionTimeout: s.timeout})
	if err != nil {
		return nil, err
	}
	joined, end := context.WithCancel(context.Background())
	left := make(chan struct{})
	go func() {
		defer close(left)
		err := locks.Partitions(s.path, s.count).Join(joined, fmt.Append(nil, "member-", s.number), func(term *actors.PartitionTerm) {
			held := l.begin(term.Partition(), term.Err)
			<-term.Context().Done()
			held.end()
		})
		if !errors.Is(err, context.Canceled) {
			failed(err)
		}
	}()
	return func() error {
		end()
		<-left
		return locks.Close()
	}, nil
}
