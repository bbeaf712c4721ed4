package inspection

import (
	"context"
	"errors"
	"fmt"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// GrantNodes are the nodes of a grant, and the session that owns them.
type GrantNodes struct {
	Session int64
	Nodes   []string
}

func (t *Target) verify(ctx context.Context, grant GrantNodes) (struct{}, error) {
	now := t.Manager.Bridge.Session()
	if now.ID != grant.Session {
		return struct{}{}, &messages.Lost{Reason: messages.Reason_SESSION_LOST, Detail: t.Path}
	}
	var checks []any
	for _, node := range grant.Nodes {
		if directory, _ := zkpath.Split(node); !t.Recipe.IsIn(t.Path, directory) {
			return struct{}{}, check.Invalid(fmt.Sprintf("node %q: it is not of the lock %s", node, t.Path))
		}
		checks = append(checks, zkbridge.CheckNode(node))
	}
	_, err := t.Manager.Bridge.MultiIn(ctx, now.Epoch, checks...)
	if failed, is := errors.AsType[*zkbridge.OpError](err); is && !errors.Is(err, messages.Reason_NO_AUTH) {
		return struct{}{}, &messages.Lost{Reason: messages.Reason_NODE_DELETED, Detail: failed.Path}
	}
	return struct{}{}, err
}

func (t *Target) verifyToken(ctx context.Context, token requests.Token) (struct{}, error) {
	return struct{}{}, CheckToken(ctx, t.Manager.Bridge, t.Path, token, queue.ReadWrite())
}

// CheckToken returns an error if a node does not hold by a token, or no more: see actors.Locks.VerifyToken.
func CheckToken(ctx context.Context, bridge zkbridge.Internals, node string, token requests.Token, rule queue.Rule) error {
	view, err := bridge.GetNode(ctx, node)
	if err != nil {
		return err
	}
	czxid := view.Stat.Czxid
	switch {
	case !view.Exists:
		return fmt.Errorf("%w: %s does not exist", messages.Reason_NOT_HELD, node)
	case czxid < token.Czxid, czxid > token.Czxid && !mayBeDowngraded(node, rule):
		return fmt.Errorf("%w: %s was made by transaction %#x, the token %v is another's", messages.Reason_NOT_HELD, node, czxid, token)
	}
	present, err := ReadGeneration(ctx, bridge) // read last, so that it is not older than the node
	switch {
	case err != nil:
		return err
	case !present.Allows(token):
		return fmt.Errorf("%w: generation %d is in force from transaction %#x on, the token %v is another's",
			messages.Reason_NOT_HELD, present.Value, present.From, token)
	}
	return nil
}

// mayBeDowngraded reports whether a node may have the token of a node that its owner had before.
func mayBeDowngraded(node string, rule queue.Rule) bool {
	_, name := zkpath.Split(node)
	_, kind, ok := rule.Parse(name)
	return ok && rule.DowngradesTo(kind)
}
