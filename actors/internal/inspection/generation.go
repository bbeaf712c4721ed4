package inspection

import (
	"context"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/zkbridge"
)

// Generation is what one read shows of the ensemble's generation: Value is in force for every czxid
// not below From; earlier generations were not greater.
type Generation struct {
	Value uint64
	From  int64
	Node  zkbridge.NodeView
}

// ReadGeneration returns the present generation. Its read includes all writes that ZooKeeper had
// acknowledged when it was called.
func ReadGeneration(ctx context.Context, bridge zkbridge.Internals) (Generation, error) {
	return generationOf(bridge.GetData(ctx, zkbridge.GenerationPath))
}

// generationOf returns the generation by the generation's node.
func generationOf(view zkbridge.NodeView, err error) (Generation, error) {
	if err != nil || !view.Exists {
		return Generation{}, err
	}
	value, err := view.Generation()
	return Generation{value, view.Stat.Mzxid, view}, err
}

// Allows reports whether a token may be of the generation that was in force at its czxid. Only
// the last raise is known, so a token from before it may have any earlier generation. That lets
// no stale holder pass. A node's name is unique, so its path and its czxid stand for one
// creation, whose grants have the generation that was in force then: a token of another
// generation was never given for it. The one case left is a node that a backup has brought back
// although its grant was over. The node stands in the queue as it did, so no contender that it
// blocks is granted the lock until it goes, with its session.
func (g Generation) Allows(t requests.Token) bool {
	return t.Generation == g.Value || t.Generation < g.Value && t.Czxid < g.From
}

// token returns the token of a node by its czxid, with generation 0 if the generation that was
// in force then is not known.
func (g Generation) token(czxid int64) requests.Token {
	if czxid < g.From {
		return requests.Token{Czxid: czxid}
	}
	return requests.Token{Generation: g.Value, Czxid: czxid}
}

func (t *Target) generation(ctx context.Context, _ struct{}) (uint64, error) {
	g, err := ReadGeneration(ctx, t.Manager.Bridge)
	return g.Value, err
}
