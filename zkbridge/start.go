package zkbridge

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// home is the directory of this library's own nodes, below the chroot.
const home = GenerationDirectory

// ownNode is the path of a session's own node. Each transaction that creates contenders
// writes it, to learn the transaction's zxid without writing data of anybody else. To make
// it is also the first transaction of a session: what the session reads later is not older
// than what any former session of this process has seen.
func ownNode(session int64) string { return fmt.Sprintf("%s/session-%016x", home, uint64(session)) }

// begin makes the session ready for its first request: nothing else is sent before.
func (ep *epoch) begin() {
	ep.started = false
	ep.starts.do(func() func() {
		own := ownNode(ep.link.id.Load())
		err := makeOwn(ep.client, own)
		return func() { ep.begun(own, err) }
	})
}

// makeOwn makes the session's own node. A node of that path can only be this session's.
func makeOwn(c client, path string) error {
	err := c.CreateEphemeral(path)
	if isMissing(err) {
		if _, err := makeDirectory(c.readable(), home); err != nil { // also by those that ask for the generation
			return err
		}
		err = c.CreateEphemeral(path)
	}
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

func (ep *epoch) begun(own string, err error) {
	if err != nil {
		what, _ := judge(err)
		if what == lost || what == notSent || isMissing(err) {
			ep.again(ep.begin)
			return
		}
		ep.core.cfg.log.Info("the session has no node of its own: contenders are created one by one", "epoch", ep.number,
			"node", own, "why", need{right: "CREATE"}.of(own).explain(err))
		own = ""
	}
	ep.own = own
	ep.outbox.limit = maxMultis
	if own == "" {
		ep.outbox.limit = maxSolos
	}
	ep.generationChanged() // since it was read in a former session, if it was
}

// ready lets requests go.
func (ep *epoch) ready() {
	ep.started = true
	ep.core.first.Do(func() { close(ep.core.bridge.ready) })
	for _, l := range ep.lanes() {
		l.due = true
	}
}

// ownFailed makes the session's own node again if another client has deleted it. The session does
// without the node if it cannot be written for another reason.
func (ep *epoch) ownFailed(err error) {
	if !isMissing(err) {
		ep.core.cfg.log.Info("the session's own node cannot be written: contenders are created one by one", "epoch", ep.number, "why", err)
		ep.own, ep.outbox.limit = "", maxSolos
		return
	}
	ep.begin()
}
