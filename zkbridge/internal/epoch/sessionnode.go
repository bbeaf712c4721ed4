package epoch

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/generation"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// SessionNodePath returns the path of a session node. Each batch that creates contenders writes
// that node, to learn the batch's zxid without writing another client's data. The creation of the
// node is also the first transaction of a session: what the session reads later is not older than
// what any former session of this process has seen.
func SessionNodePath(session int64) string {
	return fmt.Sprintf("%s/session-%016x", generation.Directory, uint64(session))
}

// Begin makes the session ready for its first request, and has the leader asked now and then.
func (ep *Epoch) Begin() {
	ep.createSessionNode()
	ep.scheduleLeaderCheck()
}

// createSessionNode makes the session ready for its first request. The bridge sends nothing else
// before, but for the probe of what the server knows.
func (ep *Epoch) createSessionNode() {
	ep.Ready = false
	probe := func() (wait func() error) { return func() error { return nil } }
	if !ep.begun { // nothing is at stake yet
		probe = ep.client.Probe
	}
	ep.jobs.Start.AddBlocking(func() func() {
		probed, path := probe(), SessionNodePath(ep.Conn.ID()) // in one flight
		err := cmp.Or(createSessionNode(ep.client, path), probed())
		if err != nil && !zkconn.IsTransient(err) { // a server may refuse it without the leader
			if failed := zkconn.Barrier(ep.client, generation.Directory); zkconn.IsTransient(failed) {
				err = failed
			}
		}
		return func() { ep.onSessionNodeCreated(path, err) }
	})
}

// createSessionNode creates the session node. A node of that path can only be this session's.
func createSessionNode(c zkconn.Client, path string) error {
	err := c.Create(path, zk.FlagEphemeral)
	if zkconn.IsMissing(err) {
		if err := makeDirectory(c, generation.Directory); err != nil {
			return err
		}
		err = c.Create(path, zk.FlagEphemeral)
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// MultiWithin executes operations as one transaction. If a node is missing it makes a directory, and
// executes them once more; "" is none.
func MultiWithin(c zkconn.Client, directory string, ops ...zkconn.Op) ([]zk.MultiResponse, error) {
	results, err := zkconn.Multi(c, ops...)
	if _, cause := zkconn.FirstFailedOp(results); directory == "" || !errors.Is(cause, zk.ErrNoNode) {
		return results, err
	}
	if err := makeDirectory(c, directory); err != nil {
		return nil, err
	}
	return zkconn.Multi(c, ops...)
}

// makeDirectory creates a directory, and the missing nodes above it. All clients may read the home
// directory: those that ask for the generation need to.
func makeDirectory(c zkconn.Client, path string) error {
	if path == generation.Directory {
		c = c.WithPublicRead()
	}
	return zkconn.MakeDirectory(c, path)
}

func (ep *Epoch) onSessionNodeCreated(path string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, zkconn.ErrNoChroot) && !ep.owner.WasReady():
		ep.owner.GiveUp(fmt.Errorf("zkbridge: %w: check its name, or create it", err))
		return
	case zkconn.IsLocalSession(err) && !ep.owner.WasReady():
		ep.owner.GiveUp(fmt.Errorf("zkbridge: %w: %w", messages.Reason_UNAVAILABLE, err))
		return
	case zkconn.IsLocalSession(err) && !ep.begun: // a transaction would be refused with SESSIONEXPIRED, and sent again for ever
		ep.setLocalSession(err)
		return
	default:
		if zkconn.IsTransient(err) || zkconn.IsMissing(err) {
			ep.RetryLater(ep.createSessionNode)
			return
		}
		ep.cfg.Log.Info("there is no session node: contenders are created one by one", "epoch", ep.Number,
			"node", path, "why", zkconn.ExplainRight(ep.client, err, "CREATE", path))
		path = ""
	}
	ep.Writer.SessionNode = path
	if ep.begun {
		ep.setReady()
		return
	}
	ep.begun = true
	ep.noteFirstZxid(ep.Conn.Zxid())
	ep.readGeneration() // and then the session is ready
}

// setLocalSession has creates fail in a session that the servers do not upgrade: they have been reconfigured
// since an earlier session of this process.
func (ep *Epoch) setLocalSession(err error) {
	if ep.noGeneration == errGenerationUnread {
		ep.cfg.Log.Error("the session is a local one: no lock can be granted", "epoch", ep.Number, "error", err,
			"do", "set localSessionsUpgradingEnabled on the servers, or localSessionsEnabled=false")
	}
	ep.refuseCreates(err, ep.createSessionNode)
}

// setReady lets requests go.
func (ep *Epoch) setReady() {
	ep.Ready = true
	waiting := ep.awaitingReady
	ep.awaitingReady = nil
	for _, f := range waiting {
		f()
	}
	ep.owner.OnReady()
}

// SessionNodeFailed implements writer.Epoch. It creates the session node again if another client
// has deleted it. The session goes on without the node if it cannot be written for another reason.
func (ep *Epoch) SessionNodeFailed(err error) {
	if !zkconn.IsMissing(err) {
		ep.cfg.Log.Info("the session node cannot be written: contenders are created one by one", "epoch", ep.Number, "why", err)
		ep.Writer.SessionNode = ""
		return
	}
	ep.createSessionNode()
}
