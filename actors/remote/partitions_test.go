package remote_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// A member through a lock server publishes again if another program has overwritten its node.
func TestOverwrittenMember(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		s := newTurns(t)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			left <- s.honest.Partitions("/group", 1).Join(ctx, []byte("data"), func(term *actors.PartitionTerm) { <-term.Context().Done() })
		}()
		<-time.After(time.Minute) // nothing is published any more
		conn := s.zk.Client(t)
		for _, node := range s.zk.Nodes(t, "/group/members") {
			if _, err := conn.Set("/group/members/"+node, []byte("of another program"), -1); err != nil {
				t.Error(err)
			}
		}
		reader := s.greedy.Partitions("/group", 1)
		if _, err := reader.Leader(t.Context(), 0); !errors.Is(err, actors.ErrNoLeader) {
			t.Errorf("a process that reads the node knows a leader: %v", err)
		}
		<-time.After(time.Minute)
		if leader, err := reader.Leader(t.Context(), 0); err != nil || string(leader.Data) != "data" {
			t.Errorf("a minute later %q leads, %v", leader.Data, err)
		}
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		s.close()
	})
}
