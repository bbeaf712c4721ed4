//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// heading prints the numbers of the shards.
func (s *story) heading() {
	fmt.Fprintf(s.out, "%-16s", "shard")
	for n := range s.consumer.shards {
		fmt.Fprintf(s.out, "%3d", n)
	}
	fmt.Fprintln(s.out)
}

// settle waits until the consumers with these names lead all shards, and then prints a row with the
// initial of each shard's leader. It is a capital where the leader is another one than in the row before.
func (s *story) settle(title string, began time.Time, names ...string) error {
	var last actors.PartitionGroup
	for {
		select {
		case g, more := <-s.group:
			if !more {
				return fmt.Errorf("%s: the group cannot be observed any more: %w", title, last.Err)
			}
			last = g
		case <-s.ctx.Done():
			return fmt.Errorf("%s: the shards have not settled, %s: %w", title, row(last), context.Cause(s.ctx))
		}
		if isSettled(last, names) {
			break
		}
	}
	took, now := time.Since(began), row(last)
	fmt.Fprintf(s.out, "%-16s", title)
	moved := 0
	for n, leader := range now {
		if s.before != "" && s.before[n] != now[n] {
			leader -= 'a' - 'A'
			moved++
		}
		fmt.Fprintf(s.out, "%3c", leader)
	}
	s.before = now
	fmt.Fprintf(s.out, "   %d moved in %.1f s\n", moved, took.Seconds())
	return nil
}

// isSettled reports whether the members are those with these names, each leads its share of the shards, none
// waits for another one, and all shards have a leader.
func isSettled(g actors.PartitionGroup, names []string) bool {
	var present []string
	share := max((len(g.Leaders)+len(names)-1)/len(names), len(g.Leaders)*11/(len(names)*10))
	for _, m := range g.Members {
		if len(m.Leads) == 0 || len(m.Leads) > share || len(m.Waits) > 0 {
			return false
		}
		present = append(present, string(m.Data))
	}
	slices.Sort(present)
	return g.Err == nil && slices.Equal(present, names) && !slices.Contains(g.Leaders, -1)
}

// row returns the initial of each shard's leader, or a dot.
func row(g actors.PartitionGroup) string {
	var b strings.Builder
	for _, at := range g.Leaders {
		if at < 0 {
			b.WriteByte('.')
		} else {
			b.WriteByte(g.Members[at].Data[0])
		}
	}
	return b.String()
}
