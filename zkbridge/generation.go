package zkbridge

import (
	"time"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// An epoch learns the generation of its tokens by a read of the generation's node that sets a
// watch: when the session begins, when the watch has fired, and over each new connection. ZooKeeper
// sends the event of a watch before the answer to any later transaction. So the answer to a create
// waits for the read if it comes while the node is unread. A create that is answered before was
// executed in the generation that is known.

// generationPause is how long the bridge waits before it reads a node again that it could not read.
const generationPause = 10 * time.Second

// generationChanged reads the generation's node, or reads it once more if a read is under way.
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

// watchGeneration reads the node and watches it, whether or not the node exists.
func watchGeneration(c zkconn.Client) (NodeView, error) {
	for {
		found, err := zkconn.Read(c, GenerationPath, true)
		if !zkconn.IsMissing(err) {
			return NodeView{Exists: err == nil, Stat: found.Stat, Data: found.Data}, err
		}
		if _, exists, err := c.Exists(GenerationPath, true); err != nil || !exists {
			return NodeView{}, err
		}
	}
}

func (ep *epoch) onGenerationRead(n NodeView, err error) {
	if err != nil {
		if zkconn.IsTransient(err) {
			ep.RetryLater(ep.readGeneration)
			return
		}
		ep.setGenerationError(zkconn.ExplainRight(ep.client, err, "READ", GenerationPath))
		return
	}
	g := &ep.actor.generations
	switch err := g.read(n.Data, n.Stat, n.Exists); {
	case err != nil && g.empty():
		ep.setGenerationError(err)
	case g.mustRaise(ep.firstZxid):
		ep.raiseGeneration(n, err)
	default:
		ep.useGeneration(err)
	}
}

// useGeneration has the generation that is known be in force. An error says why the node is not to
// be believed.
func (ep *epoch) useGeneration(err error) {
	if err != nil {
		ep.actor.cfg.Log.Error("the generation of tokens is not what it was", "node", GenerationPath, "error", err,
			"do", "write a number to the node that is greater than any before; the last one stays in force")
	}
	ep.generationErr = nil
	ep.actor.bridge.noTokens.Store(nil)
	if ep.actor.generations.unread() {
		ep.readGeneration()
		return
	}
	ep.onGenerationKnown()
}

// setGenerationError has creates fail until the generation can be read, and is high enough.
func (ep *epoch) setGenerationError(err error) {
	if ep.generationErr == nil {
		ep.actor.cfg.Log.Error("the generation of tokens is not known: no lock can be granted", "node", GenerationPath, "error", err,
			"do", "grant READ and WRITE on the node, or write a number to it that is greater than any before")
	}
	ep.generationErr = err
	var failed error = &messages.Failed{Epoch: ep.number, Reason: reasonOf(err), Detail: err.Error()}
	ep.actor.bridge.noTokens.Store(&failed)
	if !ep.generationDue {
		ep.generationDue = true
		ep.AfterFunc(generationPause, func() {
			ep.generationDue = false
			ep.readGeneration()
		})
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
	if !ep.ready {
		ep.setReady()
	}
}

// WithGeneration implements writer.Epoch: it calls then at once, or when a read that is under way
// is answered.
func (ep *epoch) WithGeneration(czxid int64, then func(generation uint64, why messages.Reason, detail string)) {
	g := &ep.actor.generations
	generation, known := g.at(czxid)
	switch {
	case known:
		then(generation, 0, "")
	case ep.generationErr != nil:
		then(0, reasonOf(ep.generationErr), ep.generationErr.Error())
	case g.unread():
		ep.awaitingGeneration = append(ep.awaitingGeneration, func() { ep.WithGeneration(czxid, then) })
	case g.isStale(czxid): // the session has no session node: its first contender shows that history was lost
		ep.awaitingGeneration = append(ep.awaitingGeneration, func() { ep.WithGeneration(czxid, then) })
		ep.onFirstZxid(czxid)
		ep.generationChanged()
	default: // between two changes of which the process saw only the last: a later czxid has a generation
		then(0, messages.Reason_NODE_DELETED, "the generation at its creation is not known")
	}
}
