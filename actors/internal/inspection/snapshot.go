package inspection

import (
	"context"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
)

// Snapshot is the queue of one lock at one moment. Its fields are as in actors.Queue.
type Snapshot struct {
	Recipe     string
	Permits    int
	Contenders []Contender
}

// Read returns the queue of the lock at path, whose recipe it finds by the names of the nodes. It
// returns the queue without tokens and with an error if the generation alone cannot be read.
func Read(ctx context.Context, bridge *zkbridge.Bridge, path string, granted Granted) (Snapshot, error) {
	if err := check.Path(path); err != nil {
		return Snapshot{}, err
	}
	r := reader{
		children: func(directory string) ([]zkbridge.Child, error) {
			return bridge.Children(ctx, directory, recipes.MayContend)
		},
		data:    func(path string) (zkbridge.NodeView, error) { return bridge.GetData(ctx, path) },
		session: bridge.Session().ID,
	}
	q, err := r.read(path)
	noteGranted(q.Contenders, granted)
	return q, err
}

// reader reads queues. The tokens have generation 0.
type reader struct {
	children func(directory string) ([]zkbridge.Child, error) // contenders with data, others as names
	data     func(path string) (zkbridge.NodeView, error)
	session  int64 // of this process
}

func (r *reader) read(path string) (q Snapshot, err error) {
	children, err := r.children(path)
	if err != nil {
		return q, err
	}
	form, nodes := recognize(children)
	switch {
	case form.KazooSemaphore:
		q, err = r.readKazooSemaphore(path, form, nodes)
	case form.Name != "":
		q.Recipe, q.Contenders = form.Name, r.contenders(path, form, nodes)
		if form.Name == semaphore { // path is the directory of a semaphore's leases
			q.Permits = holdKnown(q.Contenders, nil, len(children)-len(nodes))
		}
	case slices.ContainsFunc(children, isLeases):
		q, err = r.readSemaphore(path)
	}
	if err == nil {
		err = stampTokens(q.Contenders, r.data)
	}
	return q, err
}

func isLeases(c zkbridge.Child) bool { return c.Name == queue.LeasesSuffix[1:] }

const (
	mutex     = "mutex"
	semaphore = "semaphore"
)

// recognize returns the recipe by the children of a directory, and those that may be contenders.
func recognize(children []zkbridge.Child) (recipes.Form, []zkbridge.Child) {
	var names []string
	var nodes []zkbridge.Child
	for _, c := range children {
		// A node without a sequence number may be anything; a contender's is ephemeral, or it may
		// not be read.
		if queue.IsContender(c.Name) || recipes.MayContend(c.Name) && (c.Stat.EphemeralOwner != 0 || c.Stat.Czxid == 0) {
			names, nodes = append(names, c.Name), append(nodes, c)
		}
	}
	return recipes.Recognize(names), nodes
}

func (r *reader) contenders(directory string, form recipes.Form, nodes []zkbridge.Child) []Contender {
	return contenders(directory, nodes, form.Positions, form.KindName, r.session)
}
