package epoch

import (
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// A follower may show a node for good that the leader does not have: ZooKeeper 3.8.0 did so after a
// partition; ZOOKEEPER-4712 and ZOOKEEPER-4785 describe such cases. A contender that has the node
// for its predecessor would wait for ever, since no event comes. So the bridge asks the leader now
// and then for the watched nodes that have not changed for long. A transaction that only checks
// them changes nothing, and the leader decides it by its own data.

const (
	// LeaderCheckPause is how long a watched node stays unchanged before the bridge asks the leader
	// for it, at least. It is no less than the session timeout.
	LeaderCheckPause = time.Minute
	// MaxChecks bounds the nodes in one transaction.
	MaxChecks = 128
)

func (ep *Epoch) leaderCheckPause() time.Duration { return max(LeaderCheckPause, ep.Conn.Timeout()) }

func (ep *Epoch) scheduleLeaderCheck() {
	pause := ep.leaderCheckPause()
	ep.AfterFunc(pause+ep.jitter.Below(pause/4), ep.checkWithLeader)
}

// checkWithLeader asks the leader for the watched nodes that have not changed for long.
func (ep *Epoch) checkWithLeader() {
	nodes := ep.watches.UnchangedSince(time.Now().Add(-ep.leaderCheckPause()))
	if len(nodes) == 0 {
		ep.scheduleLeaderCheck()
		return
	}
	ep.jobs.Singles.AddBlocking(func() func() {
		conn := ep.Conn.Active()
		confirmed, phantoms := CheckWithLeader(ep.client, nodes)
		return func() {
			for _, path := range confirmed {
				ep.watches.Confirmed(path)
			}
			if len(phantoms) > 0 && conn != nil && conn == ep.Conn.Active() { // all answers came over conn
				ep.onPhantoms(conn, phantoms)
			}
			ep.scheduleLeaderCheck()
		}
	})
}

// CheckWithLeader returns the nodes that the leader has, and those that the leader does not have
// although the server shows them. It leaves out nodes of which it learns nothing: the bridge asks
// for them again.
func CheckWithLeader(c zkconn.Client, nodes []string) (confirmed, phantoms []string) {
	slices.Sort(nodes) // so that the order of requests does not depend on a map
	for len(nodes) > 0 {
		some := nodes[:zkconn.Sharing(len(nodes), MaxChecks, func(i int) int { return zkconn.OpBytes + len(c.FullPath(nodes[i])) })]
		checks := make([]zkconn.Op, len(some))
		for i, path := range some {
			checks[i] = zkconn.CheckExists(path)
		}
		results, err := zkconn.Multi(c, checks...)
		i, cause := zkconn.FirstFailedOp(results)
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
		copy(nodes[1:], nodes[:i]) // without nodes[i]: it may have gone, or the bridge may not check it
		nodes = nodes[1:]
	}
	return confirmed, phantoms
}

// isPhantom reports whether the server shows a node that the leader does not have. The server has
// shown the node before the leader is asked. When it shows the same node once more, it has executed
// all that the leader had: the answer to a transaction, even to one that fails, comes behind those
// of all earlier transactions.
func isPhantom(c zkconn.Client, path string) (bool, error) {
	before, exists, err := c.Exists(path)
	if err != nil || !exists {
		return false, err
	}
	switch err := zkconn.Barrier(c, path); {
	case err == nil:
		return false, nil
	case !errors.Is(err, zk.ErrNoNode):
		return false, err
	}
	after, exists, err := c.Exists(path)
	return exists && after.Czxid == before.Czxid, err
}

// onPhantoms logs the server of a connection that shows phantoms, and leaves it for another one.
func (ep *Epoch) onPhantoms(conn *zkconn.Conn, phantoms []string) {
	ep.cfg.Log.Error("the server shows nodes that the ensemble's leader does not have, and locks wait for them",
		"server", conn.Server, "address", conn.RemoteAddr().String(), "nodes", phantoms[:min(len(phantoms), 10)], "count", len(phantoms),
		"do", "stop that server, delete its data, and start it again, so that it copies the leader's; another server is tried meanwhile")
	if len(ep.cfg.Servers.All()) > 1 {
		go conn.Close()
	}
}
