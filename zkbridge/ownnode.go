package zkbridge

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// homeDirectory is the directory of this library's own nodes, below the chroot.
const homeDirectory = GenerationDirectory

// ownNodePath is the path of a session's own node. Each transaction that creates contenders
// writes it, to learn the transaction's zxid without writing data of anybody else. To make
// it is also the first transaction of a session: what the session reads later is not older
// than what any former session of this process has seen.
func ownNodePath(session int64) string {
	return fmt.Sprintf("%s/session-%016x", homeDirectory, uint64(session))
}

// createOwnNode makes the session ready for its first request: nothing else is sent before.
func (ep *epoch) createOwnNode() {
	ep.started = false
	ep.startQueue.addBlocking(func() func() {
		own := ownNodePath(ep.conn.ID())
		err := createOwnNode(ep.client, own)
		return func() { ep.onOwnNodeCreated(own, err) }
	})
}

// createOwnNode makes the session's own node. A node of that path can only be this session's.
func createOwnNode(c zkconn.Client, path string) error {
	err := c.CreateEphemeral(path)
	if zkconn.IsMissing(err) {
		if _, err := zkconn.MakeDirectory(c.WithPublicRead(), homeDirectory); err != nil { // also by those that ask for the generation
			return err
		}
		err = c.CreateEphemeral(path)
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

func (ep *epoch) onOwnNodeCreated(own string, err error) {
	if err != nil {
		what, _ := zkconn.Classify(err)
		if what == zkconn.ConnectionLost || what == zkconn.NotSent || zkconn.IsMissing(err) {
			ep.retryLater(ep.createOwnNode)
			return
		}
		ep.actor.cfg.Log.Info("the session has no node of its own: contenders are created one by one", "epoch", ep.number,
			"node", own, "why", zkconn.RightOnParent("CREATE", own).Explain(err))
		own = ""
	}
	ep.ownNode = own
	ep.batcher.limit = maxTransactions
	if own == "" {
		ep.batcher.limit = maxSingleWrites
	}
	ep.generationChanged() // since it was read in a former session, if it was
}

// setReady lets requests go.
func (ep *epoch) setReady() {
	ep.started = true
	ep.actor.readyOnce.Do(func() { close(ep.actor.bridge.ready) })
	for _, l := range ep.queues() {
		l.mayStart = true
	}
}

// onOwnNodeFailure makes the session's own node again if another client has deleted it. The session does
// without the node if it cannot be written for another reason.
func (ep *epoch) onOwnNodeFailure(err error) {
	if !zkconn.IsMissing(err) {
		ep.actor.cfg.Log.Info("the session's own node cannot be written: contenders are created one by one", "epoch", ep.number, "why", err)
		ep.ownNode, ep.batcher.limit = "", maxSingleWrites
		return
	}
	ep.createOwnNode()
}
