package zkbridge

import (
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// How an epoch learns the generation of its tokens: from a read of the generation's node that
// sets a watch, when the session begins, when the watch has fired, and over each new
// connection. ZooKeeper sends the event of a watch before the answer to any later
// transaction. So an answer to a create that comes while the node is unread waits for the
// read, and one that comes before was created in the generation that is known.

// generationPause is how long to wait before the node is read again that could not be read.
const generationPause = 10 * time.Second

// generationChanged reads the generation's node, once more if it is being read.
func (ep *epoch) generationChanged() {
	ep.actor.generations.changed()
	ep.readGeneration()
}

func (ep *epoch) readGeneration() {
	if ep.generationReading || ep.over {
		return
	}
	ep.generationReading = true
	ep.actor.generations.asking()
	ep.startQueue.addBlocking(func() func() {
		n, err := watchGeneration(ep.client)
		return func() {
			ep.generationReading = false
			ep.onGenerationRead(n, err)
		}
	})
}

// generationNode is the generation's node as it was read.
type generationNode struct {
	data   []byte
	stat   zk.Stat
	exists bool
}

// watchGeneration reads the node and watches it, whether it is there or not.
func watchGeneration(c zkconn.Client) (n generationNode, err error) {
	for {
		n.data, n.stat, err = c.GetWatched(GenerationPath)
		n.exists = err == nil
		if !zkconn.IsMissing(err) {
			return n, err
		}
		var exists bool
		if exists, err = c.ExistsWatched(GenerationPath); err != nil || !exists {
			return generationNode{}, err
		}
	}
}

func (ep *epoch) onGenerationRead(n generationNode, err error) {
	if err != nil {
		if what, _ := zkconn.Classify(err); what == zkconn.ConnectionLost || what == zkconn.NotSent {
			ep.retryLater(ep.readGeneration)
			return
		}
		ep.setGenerationError(zkconn.RightOn("READ", GenerationPath).Explain(err))
		return
	}
	g := &ep.actor.generations
	if err := g.read(n.data, n.stat, n.exists); err != nil {
		if g.empty() {
			ep.setGenerationError(err)
			return
		}
		ep.actor.cfg.Log.Error("the generation of tokens is not what it was", "node", GenerationPath, "error", err)
	}
	ep.generationErr = nil
	if g.unread() {
		ep.readGeneration()
		return
	}
	ep.onGenerationKnown()
}

// setGenerationError has creates fail until the generation can be read.
func (ep *epoch) setGenerationError(err error) {
	if ep.generationErr == nil {
		ep.actor.cfg.Log.Error("the generation of tokens cannot be read: no lock can be granted", "node", GenerationPath, "error", err)
	}
	ep.generationErr = err
	if ep.generationTimer == nil {
		again := task(func(*bridgeActor) {
			ep.generationTimer = nil
			ep.readGeneration()
		})
		ep.generationTimer = time.AfterFunc(generationPause, func() { ep.actor.self.Tell(again) })
	}
	ep.onGenerationKnown()
}

// onGenerationKnown goes on with what has waited for the generation.
func (ep *epoch) onGenerationKnown() {
	waiting := ep.awaitingGeneration
	ep.awaitingGeneration = nil
	for _, f := range waiting {
		f()
	}
	if !ep.started {
		ep.setReady()
	}
}

// withGeneration calls then with the generation that was in force at a czxid, or with the reason why
// that is not known: at once, or when a read that is under way is answered.
func (ep *epoch) withGeneration(czxid int64, then func(generation uint64, why messages.Reason, detail string)) {
	g := &ep.actor.generations
	generation, known := g.at(czxid)
	switch {
	case known:
		then(generation, 0, "")
	case ep.generationErr != nil:
		then(0, reasonOf(ep.generationErr), ep.generationErr.Error())
	case g.unread():
		ep.awaitingGeneration = append(ep.awaitingGeneration, func() { ep.withGeneration(czxid, then) })
	case g.isAhead(ep.conn.Zxid()):
		then(0, messages.Reason_UNAVAILABLE, "ZooKeeper's transactions went back, as by a restore: raise the generation")
	default: // between two changes of which only the last was seen: a later czxid has one
		then(0, messages.Reason_NODE_DELETED, "the generation at its creation is not known")
	}
}

// answerCreated answers a create with the generation that was in force then.
func (ep *epoch) answerCreated(c *createRequest, msg *messages.Created) {
	ep.withGeneration(msg.Czxid, func(generation uint64, why messages.Reason, detail string) {
		if why != 0 {
			ep.rollBack(c, msg.Node, why, detail)
			return
		}
		msg.Generation = generation
		ep.answer(c, c.replyTo, msg)
	})
}

// rollBack deletes the node of a create and then fails it.
func (ep *epoch) rollBack(c *createRequest, node string, why messages.Reason, detail string) {
	failed := rollbackReply(func(become string) { ep.fail(c, why, "create %s: it was made and %s: %s", c.path(), become, detail) })
	ep.batcher.add(write{release: &releaseRequest{replyTo: replyTo{to: failed}, path: zkconn.JoinPath(c.directory, node)}})
}
