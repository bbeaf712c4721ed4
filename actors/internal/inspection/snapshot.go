package inspection

import (
	"context"
	"slices"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Snapshot is the queue of one lock at one moment. Its fields are as in actors.Queue.
type Snapshot struct {
	Recipe     string
	Permits    int
	Contenders []Contender
}

// inspect returns the queue of the lock, whose recipe it finds by the names of the nodes. It returns the
// queue without tokens and with an error if the generation alone cannot be read.
func (t *Target) inspect(ctx context.Context, _ struct{}) (Snapshot, error) {
	if err := check.Path(t.Path); err != nil {
		return Snapshot{}, err
	}
	bridge := t.Manager.Bridge
	r := reader{
		children: func(directory string) ([]zkbridge.Child, error) {
			return bridge.Children(ctx, directory, mayContend)
		},
		data:    func(path string) (zkbridge.NodeView, error) { return bridge.PeekData(ctx, path) }, // behind the children
		session: bridge.Session().ID,
	}
	q, err := r.read(t.Path)
	t.noteGranted(q.Contenders)
	return t.permitted(q, err)
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
	f, nodes := recognize(children)
	switch {
	case f.kazooSemaphore:
		q, err = r.readKazooSemaphore(path, f, nodes)
	case f.name != "":
		q.Recipe, q.Contenders = f.name, r.contenders(path, f, nodes)
		if f.name == semaphore { // path is the directory of a semaphore's leases
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

func (r *reader) contenders(directory string, f form, nodes []zkbridge.Child) []Contender {
	return contenders(directory, nodes, f.positions, f.recipe.KindName, r.session)
}

// permitted returns a snapshot, and the error with which it was read. A client of a lock server gets an
// empty one with an error if it may not inspect one of the directories.
func (t *Target) permitted(q Snapshot, err error) (Snapshot, error) {
	last := t.Path
	for _, c := range q.Contenders {
		directory, _ := zkpath.Split(c.Node)
		if directory == last {
			continue
		}
		if denied := t.mayInspect(directory); denied != nil {
			return Snapshot{}, denied
		}
		last = directory
	}
	return q, err
}

// mayInspect returns an error if the client that asks may not inspect a path. A program may inspect
// all.
func (t *Target) mayInspect(path string) error {
	if t.asker == nil {
		return nil
	}
	return t.asker.MayInspect(path)
}
