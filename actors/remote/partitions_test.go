package remote_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
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

// leaveWorld is a group with one partition: a member leads it, and another one has just begun to campaign,
// through a lock server. ZooKeeper's answer to its create takes a time, and so does a delete. Meanwhile a lock's
// actor that needs nothing retires.
type leaveWorld struct {
	*turns
	leave context.CancelFunc
	left  chan error // of the member that waits
	end   func()
}

func newLeaveWorld(t *testing.T, alter func(*messages.ServerFrame)) *leaveWorld {
	t.Helper()
	w := &leaveWorld{turns: newTurnsBy(t, alter, actors.Config{IdleTimeout: createTime / 10})}
	join := func(locks *actors.Locks) (leave context.CancelFunc, left chan error) {
		ctx, leave := context.WithCancel(t.Context())
		left = make(chan error, 1)
		go func() {
			left <- locks.Partitions("/group", 1).Join(ctx, nil, func(term *actors.PartitionTerm) { <-term.Context().Done() })
		}()
		return leave, left
	}
	leave, left := join(w.greedy)
	for len(w.zk.Nodes(t, partitionPath)) < 1 {
		<-time.After(time.Millisecond)
	}
	<-time.After(time.Second)
	create := w.zk.Embedded().Inject(embedded.Fault{Op: embedded.OpMulti, Path: partitionPath, Action: embedded.DelayReply, Delay: createTime})
	w.zk.Embedded().Inject(embedded.Fault{Path: partitionPath + "/_c_", Nth: 2, Times: -1, Action: embedded.DelayRequest, Delay: createTime / 2})
	w.leave, w.left = join(w.honest)
	<-create.Fired()
	w.end = func() {
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		w.close()
	}
	return w
}

const (
	partitionPath = "/group/partitions/00000"
	createTime    = 500 * time.Millisecond
)

// A member through a lock server that leaves while the create of its campaign is under way has left once the
// node is gone.
func TestLeaveBehindACampaign(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newLeaveWorld(t, nil)
		began := time.Now()
		w.leave()
		if err := <-w.left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if after := time.Since(began); after > 2*createTime+time.Second/2 {
			t.Errorf("the member has left after %v", after)
		}
		if nodes := w.zk.Nodes(t, partitionPath); len(nodes) != 1 {
			t.Errorf("the member has left, and the partition has the nodes %v", nodes)
		}
		w.end()
	})
}

// answersNoCancel takes the answers to Cancels out of a frame of a lock server.
func answersNoCancel(f *messages.ServerFrame) {
	for _, m := range f.Messages {
		if m.GetRefused() != nil {
			m.What = nil
		}
	}
}

// A member through a lock server of an earlier version, which answers no Cancel, leaves at once. Through a
// server that leaves the answer out it leaves when the lease can have ended, and so it does if its stream
// is lost.
func TestLeaveWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		alter  func(*messages.ServerFrame)
		cut    bool
		within time.Duration
	}{
		"earlier version": {alter: func(f *messages.ServerFrame) {
			answersNoCancel(f)
			if f.Welcome != nil {
				f.Welcome.AwaitsNodes = false
			}
		}, within: createTime + time.Second/2},
		"no answer":   {alter: answersNoCancel, within: leaseTime + time.Second},
		"lost stream": {cut: true, within: leaseTime + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zktest.Bubble(t, func(t *testing.T) {
				w := newLeaveWorld(t, c.alter)
				if c.cut {
					w.fabric.cut("honest", "server", time.Hour)
					w.fabric.cut("server", "honest", time.Hour)
				}
				began := time.Now()
				w.leave()
				<-w.left
				if after := time.Since(began); after > c.within || c.within > leaseTime && after < leaseTime/4 {
					t.Errorf("the member has left after %v, and is to within %v", after, c.within)
				}
				w.fabric.heal()
				<-time.After(leaseTime)
				if nodes := w.zk.Nodes(t, partitionPath); len(nodes) != 1 {
					t.Errorf("the partition has the nodes %v", nodes)
				}
				w.end()
			})
		})
	}
}

// A member through a lock server that drains gives its place in the list back with its partitions, once its
// functions have returned, and is a member through the next server.
func TestMembersWhileDraining(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		const slow = 3 * time.Second // that a function takes to return
		w := newWorld(t, 1, "first", "second")
		for _, name := range w.names {
			w.startServer(name)
		}
		locks := []*actors.Locks{w.dial("mover", w.names), w.dial("other", w.names[1:])}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, len(locks))
		var leads [2]atomic.Int32 // by path
		for i, path := range []string{"/alone", "/together", "/together"} {
			go func() {
				left <- locks[i/2].Partitions(path, 8).Join(ctx, nil, func(term *actors.PartitionTerm) {
					at := &leads[min(i, 1)]
					at.Add(1)
					<-term.Context().Done()
					<-time.After(slow)
					at.Add(-1)
				})
			}()
		}
		<-time.After(time.Minute)
		time.AfterFunc(slow/2, func() {
			if nodes := w.zk.Nodes(t, "/alone/members"); len(nodes) != 1 {
				t.Errorf("functions of the member run, and the list has the nodes %v", nodes)
			}
		})
		server, began := w.servers[0].server, time.Now()
		if err := server.Drain(t.Context(), time.Hour); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > slow+time.Second || server.Stats().LeasesLost > 0 {
			t.Errorf("the server has drained after %v, and %d leases were lost", took, server.Stats().LeasesLost)
		}
		<-time.After(slow + 5*time.Second)
		for i := range leads {
			if n := leads[i].Load(); n != 8 {
				t.Errorf("group %d: %d of 8 partitions are led", i, n)
			}
		}
		leave()
		for range 3 {
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		w.closeAll(locks...)
	})
}

// A member that leaves while its lock server drains, and its process holds something else of the server, does not
// wait for answers about campaigns that the server has not taken.
func TestLeaveWhileDraining(t *testing.T) {
	t.Parallel()
	zktest.Bubble(t, func(t *testing.T) {
		w := newWorld(t, 1, "server")
		w.startServer("server")
		l := w.dial("client", w.names)
		g := lockOf(t, l.Mutex("/held"))
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() {
			left <- l.Partitions("/group", 2).Join(ctx, nil, func(term *actors.PartitionTerm) {
				<-term.Context().Done()
				if term.Partition() == 0 {
					<-ctx.Done()
				}
			})
		}()
		<-time.After(time.Minute)
		drained := make(chan error, 1)
		go func() { drained <- w.servers[0].server.Drain(t.Context(), time.Hour) }()
		<-time.After(30 * time.Second) // the member campaigns for partition 1 again
		began := time.Now()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the member has left after %v", took)
		}
		if err := g.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		w.closeAll(l)
	})
}

// A member that may do all but read the list of members does not stay in it without leading anything.
func TestMemberThatMayNotInspect(t *testing.T) {
	zktest.Bubble(t, func(t *testing.T) {
		_, connect, close := virtualServer(t, remote.ServerConfig{Logger: slog.New(slog.DiscardHandler), Allow: func(_ remote.Peer, path string, verb remote.Verb) error {
			if path == "/group/members" && verb == remote.VerbInspect {
				return errPolicy
			}
			return nil
		}})
		l := connect()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := l.Partitions("/group", 2).Join(ctx, nil, func(*actors.PartitionTerm) { t.Error("the member leads") })
		if !errors.Is(err, actors.ErrNoAuth) || !strings.Contains(err.Error(), "/group") || !strings.Contains(err.Error(), errPolicy.Error()) {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		close()
	})
}
