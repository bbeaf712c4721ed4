package zkbridge

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// A follower may show a node for good that the leader does not have: ZooKeeper 3.8.0 did so after
// a partition; ZOOKEEPER-4712 and ZOOKEEPER-4785 describe such cases. A contender that has it for its
// predecessor would wait for ever, since no event comes. So the bridge asks the leader now and
// then for the nodes that are watched and have not changed for long. A transaction that only
// checks them changes nothing, and the leader decides it by its own data.

// phantomPause is how long a watched node may stay as it is before the leader is asked for it,
// at least. It is no less than the session timeout.
const phantomPause = time.Minute

// askLater has the leader asked after a pause.
func (ep *epoch) askLater() {
	pause := ep.phantomPause()
	ask := task(func(*core) { ep.askLeader() })
	ep.asking = time.AfterFunc(pause+ep.spread.below(pause/4), func() { ep.core.self.Tell(ask) })
}

func (ep *epoch) phantomPause() time.Duration {
	return max(phantomPause, time.Duration(ep.link.timeout.Load()))
}

// askLeader asks for the watched nodes that have not changed for long.
func (ep *epoch) askLeader() {
	if ep.over {
		return
	}
	nodes := ep.watches.unchangedSince(time.Now().Add(-ep.phantomPause()))
	if len(nodes) == 0 {
		ep.askLater()
		return
	}
	ep.solos.do(func() func() {
		w := ep.link.current.Load()
		confirmed, phantoms := askLeader(ep.client, nodes)
		return func() {
			for _, path := range confirmed {
				ep.watches.confirmed(path)
			}
			if len(phantoms) > 0 && w != nil && w == ep.link.current.Load() { // all answers came over w
				ep.disagrees(w, phantoms)
			}
			ep.askLater()
		}
	})
}

// askLeader returns those of the nodes that the leader has, and those that it does not have
// although the server shows them. It leaves out what it cannot learn: the nodes are asked for
// again.
func askLeader(c client, nodes []string) (confirmed, phantoms []string) {
	for len(nodes) > 0 {
		some := nodes[:min(len(nodes), maxOps)]
		var checks []any
		for _, path := range some {
			checks = append(checks, &zk.CheckVersionRequest{Path: path, Version: anyVersion})
		}
		results, err := multi(c, checks...)
		i, cause := culprit(results)
		switch {
		case err == nil:
			confirmed, nodes = append(confirmed, some...), nodes[len(some):]
			continue
		case i < 0:
			return confirmed, phantoms
		case errors.Is(cause, zk.ErrNoNode):
			phantom, err := isPhantom(c, some[i])
			if err != nil {
				return confirmed, phantoms
			}
			if phantom {
				phantoms = append(phantoms, some[i])
			}
		}
		nodes = append(nodes[:i:i], nodes[i+1:]...) // it may have gone, or may not be checked
	}
	return confirmed, phantoms
}

// isPhantom reports whether the server shows a node that the leader does not have. The server
// has shown it before the leader is asked, and has executed all that the leader has when it
// shows the same node once more: the answer to a transaction, even to one that fails, comes
// behind those of all earlier ones.
func isPhantom(c client, path string) (bool, error) {
	before, exists, err := c.Exists(path)
	if err != nil || !exists {
		return false, err
	}
	switch err := barrier(c, path); {
	case err == nil:
		return false, nil
	case !errors.Is(err, zk.ErrNoNode):
		return false, err
	}
	after, exists, err := c.Exists(path)
	return exists && after.Czxid == before.Czxid, err
}

// disagrees reports the server of a connection that shows nodes which the leader does not have,
// and leaves it for another one.
func (ep *epoch) disagrees(w *wire, phantoms []string) {
	ep.core.cfg.log.Error("the server shows nodes that the ensemble's leader does not have, and locks wait for them",
		"server", w.server, "address", w.RemoteAddr().String(), "nodes", phantoms[:min(len(phantoms), 10)], "count", len(phantoms),
		"do", "stop that server, delete its data, and start it again, so that it copies the leader's; another server is tried meanwhile")
	if len(ep.core.cfg.servers) > 1 {
		go w.Close()
	}
}
