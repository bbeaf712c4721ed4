package inspection

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Contender is a node in a lock's queue. Data, Session and Since are not known of a node that
// this process may not read.
type Contender struct {
	Node      string // its full path
	Kind      string
	Data      []byte
	Session   int64     // that owns the node; 0 if the node is persistent, or if that is not known
	Since     time.Time // when it was created, by the clock of ZooKeeper's leader; zero if that is not known
	Token     requests.Token
	Permits   int // of its process's lock, by its name; 0 if the name does not show that
	Ahead     int // contenders before it
	Holds     bool
	Local     bool      // the session is this process's
	HeldSince time.Time // when it came to hold, by the clock of this process; zero if that is not known
}

// participants returns the contenders for the lock by its recipe.
func (t *Target) participants(ctx context.Context, _ struct{}) (Snapshot, error) {
	all, err := t.contenders(ctx)
	return Snapshot{Contenders: all}, err
}

// NodeData is the data of a contender's node, if the node exists.
type NodeData struct {
	Exists bool
	Data   []byte
}

// readData reads a contender's node, without a barrier.
func (t *Target) readData(ctx context.Context, _ struct{}) (NodeData, error) {
	if _, name := zkpath.Split(t.Path); !queue.IsContender(name) {
		return NodeData{}, check.Invalid(fmt.Sprintf("node %q: it must be the path of a contender's node, as Grant.Node gives it", t.Path))
	}
	view, err := t.Manager.Bridge.PeekData(ctx, t.Path)
	return NodeData{view.Exists, view.Data}, err
}

// contenders returns the contenders for the lock by its recipe. It returns them without tokens and with
// an error if the generation alone cannot be read.
func (t *Target) contenders(ctx context.Context) ([]Contender, error) {
	directory, rule, err := t.queue(ctx)
	if err != nil {
		return nil, err
	}
	bridge := t.Manager.Bridge
	children, err := bridge.Children(ctx, directory, nil)
	if err != nil {
		return nil, err
	}
	all := contenders(directory, children, rule.Positions, t.Recipe.KindName, bridge.Session().ID)
	t.noteGranted(all)
	return all, stampTokens(all, func(path string) (zkbridge.NodeView, error) { return bridge.PeekData(ctx, path) })
}

// queue returns the directory and the rule of the lock's contenders.
func (t *Target) queue(ctx context.Context) (directory string, rule queue.Rule, err error) {
	if t.Recipe.Members != nil {
		return "", rule, check.Invalid(fmt.Sprintf("a %v has no queue of its own: ask its members", t.Recipe))
	}
	directory, rule = t.Path, t.Recipe.Rule
	if t.Recipe.Permits > 0 {
		n, err := t.permits(ctx)
		if err != nil {
			return "", rule, err
		}
		directory, rule = t.Path+queue.LeasesSuffix, queue.Leases(n)
	}
	return directory, rule, check.Path(t.Path)
}

// contenders returns the contenders among the children of a directory. Their tokens have generation
// 0.
func contenders(directory string, children []zkbridge.Child, positions func([]queue.Child) []queue.Position, kindName func(queue.Kind) string,
	session int64) (all []Contender) {
	index := map[string]int{}
	seen := make([]queue.Child, len(children))
	for i, c := range children {
		index[c.Name], seen[i] = i, queue.Child{Name: c.Name, Czxid: c.Stat.Czxid}
	}
	for _, at := range positions(seen) {
		c := children[index[at.Name]]
		found := Contender{
			Node:    zkpath.Join(directory, at.Name),
			Kind:    kindName(at.Kind),
			Data:    c.Data,
			Session: c.Stat.EphemeralOwner,
			Local:   c.Stat.EphemeralOwner == session && session != 0,
			Token:   requests.Token{Czxid: c.Stat.Czxid},
			Ahead:   at.Ahead,
			Holds:   at.Holds,
			Permits: lockqueue.PermitsOf(at.Name),
		}
		if c.Stat.Czxid != 0 {
			found.Since = time.UnixMilli(c.Stat.Ctime)
		}
		all = append(all, found)
	}
	return all
}

// noteGranted has the holders of this process hold since their owners were granted the lock: of several
// grants by a node, the first one counts.
func (t *Target) noteGranted(all []Contender) {
	if !slices.ContainsFunc(all, func(c Contender) bool { return c.Local && c.Holds }) {
		return
	}
	since := map[string]time.Time{} // by node
	for _, r := range t.Manager.OpenAt(t.Path) {
		if r.State != manager.Held {
			continue
		}
		for _, node := range lock.NodesOf(r.Granted) {
			if at, is := since[node]; !is || r.Since.Before(at) {
				since[node] = r.Since
			}
		}
	}
	for i := range all {
		if c := &all[i]; c.Holds {
			c.HeldSince = since[c.Node]
		}
	}
}

// stampTokens completes the tokens with the generation. It reads that after the nodes and in the same
// session, so that it is not older than they are.
func stampTokens(all []Contender, data func(path string) (zkbridge.NodeView, error)) error {
	if len(all) == 0 {
		return nil
	}
	present, err := generationOf(data(zkbridge.GenerationPath))
	for i := range all {
		c := &all[i]
		if c.Token = present.token(c.Token.Czxid); err != nil {
			c.Token = requests.Token{}
		}
	}
	return err
}
