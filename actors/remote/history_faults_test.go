package remote_test

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// fault does something bad.
func (w *world) fault(r *rand.Rand) {
	c, s := w.clients[r.IntN(len(w.clients))], w.servers[r.IntN(len(w.servers))]
	d := time.Duration(r.Int64N(int64(10 * time.Second)))
	if s.dead {
		return
	}
	switch what := r.IntN(22); what {
	case 0:
		w.logf("FAULT: cut %s to %s for %v", c.name, s.name, d)
		w.cut(c.name, s.name, d)
	case 1:
		w.logf("FAULT: cut %s to %s for %v", s.name, c.name, d)
		w.cut(s.name, c.name, d)
	case 2:
		w.logf("FAULT: freeze %s for %v", c.name, d)
		w.cutAll(c.name, w.names, d)
		w.freeze(c.machine, d)
	case 3:
		w.logf("FAULT: the streams of %s break", s.name)
		w.breakStreams("", s.name)
	case 4:
		w.logf("FAULT: the streams of %s break", c.name)
		w.breakStreams(c.name, "")
	case 5:
		w.logf("FAULT: cut %s from ZooKeeper for %v", s.name, d)
		s.wire.cutOff(d)
	case 6:
		w.logf("FAULT: %s raises the generation, which ends the sessions of all servers", s.name)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if _, err := s.locks.RaiseGeneration(ctx); err != nil {
			w.logf("%v", err) // it is cut off
		}
		cancel()
	case 7:
		w.logf("FAULT: kill %s", s.name)
		w.killServer(s)
		<-time.After(d)
		w.startServer(s.name)
	case 8:
		w.logf("FAULT: drain %s", s.name)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if err := s.server.Drain(ctx, time.Second); err != nil {
			w.Error(err)
		}
		cancel()
		w.closeServer(s)
		w.startServer(s.name)
	case 10:
		w.logf("FAULT: close %s", s.name)
		w.closeServer(s)
		w.startServer(s.name)
	case 9:
		w.logf("FAULT: kill %s", c.name)
		w.killClient(c)
	case 11, 12:
		path := paths[r.IntN(len(paths))]
		nodes := w.zk.Nodes(w, path)
		if len(nodes) == 0 {
			return
		}
		node := path + "/" + nodes[r.IntN(len(nodes))]
		w.logf("FAULT: delete %s, and cut %s to %s for %v", node, s.name, c.name, d)
		w.cut(s.name, c.name, d)
		w.ledger.noteDeleted(node)
		if err := w.operator.Delete(node, -1); err != nil {
			w.logf("%v", err) // its owner has released it
		}
	case 13:
		w.logf("FAULT: freeze %s for %v", s.name, d)
		s.wire.cutOff(d)
		w.cutAll(s.name, w.clientNames(), d)
		w.freeze(s.machine, d)
	case 14:
		w.logf("FAULT: suspend %s for %v", c.name, d)
		w.suspend(c, d, time.Duration(r.Int64N(int64(time.Second))))
	case 18, 19, 20: // the client goes on to send by a stream that brings it nothing
		part := time.Duration(r.Int64N(int64(leaseTime)))
		w.logf("FAULT: for %v nothing comes from %s to %s, and the streams break then", part, s.name, c.name)
		w.cut(s.name, c.name, part)
		<-time.After(part)
		w.breakStreams(c.name, s.name)
	case 21:
		w.logf("FAULT: the connection of %s to %s is half open", c.name, s.name)
		w.halfOpen(c.name, s.name)
	case 15, 16, 17:
		w.zooKeeperFault(s, d, r)
	}
}

// killServer ends a server without a word: ZooKeeper and the clients hear nothing more of it.
func (w *world) killServer(s *serverProcess) {
	s.dead = true
	w.set(s.name, nil)
	s.wire.cutOff(time.Hour)
	w.breakStreams("", s.name)
}

// closeAll closes the clients, and then the servers that are up.
func (w *world) closeAll(clients ...*actors.Locks) {
	for _, l := range clients {
		if err := l.Close(); err != nil {
			w.Error(err)
		}
	}
	for _, s := range w.servers {
		if !s.dead {
			w.closeServer(s)
		}
	}
}

func (w *world) closeServer(s *serverProcess) {
	s.dead = true
	w.set(s.name, nil)
	if err := s.server.Close(); err != nil {
		w.Error(err)
	}
	w.breakStreams("", s.name)
	s.wire.heal()
	switch err := s.close(); {
	case err != nil && w.over.Load():
		w.Error(err)
	case err != nil:
		w.logf("%v", err) // it was cut off: its session expires
	}
}

// killClient ends a client without a word.
func (w *world) killClient(c *clientProcess) {
	if c.dead.Swap(true) {
		return
	}
	w.cutAll(c.name, w.names, time.Hour)
	w.breakStreams(c.name, "")
}

// zooKeeperFault is a fault of ZooKeeper, most of the time for the session of one server.
func (w *world) zooKeeperFault(s *serverProcess, d time.Duration, r *rand.Rand) {
	zk, session := w.zk.Embedded(), s.locks.Session().ID
	switch r.IntN(6) {
	case 0:
		w.logf("FAULT: ZooKeeper is away for %v", d)
		zk.Halt()
		<-time.After(d)
		zk.Restart()
	default:
		actions := []embedded.Action{embedded.CutBefore, embedded.DropReply, embedded.CutAfter, embedded.DelayRequest, embedded.DelayReply,
			embedded.BlackHole, embedded.BlackHoleAfter, embedded.StaleReads}
		f := embedded.Fault{Op: embedded.OpAny, Session: session, Nth: 1 + r.IntN(5), Times: 1 + r.IntN(3), Action: actions[r.IntN(len(actions))],
			Delay: time.Duration(r.Int64N(int64(3 * time.Second)))}
		w.logf("FAULT: for %v, %v at request %d of %s", d, f.Action, f.Nth, s.name)
		injected := zk.Inject(f)
		w.undoing.Go(func() {
			<-time.After(d)
			injected.Remove()
			zk.Thaw(session)
		})
	}
}
