package inspection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/lock"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Asker is a client of a lock server that asks a question. Any goroutine may call its functions.
type Asker struct {
	// Owns reports whether a request is the client's.
	Owns func(from ask.Recipient) bool
	// MayInspect returns why the client must not hear of what is at a path, or nil. It is asked for
	// paths that only the answer shows; the others are those of PathsOf.
	MayInspect func(path string) error
}

// Answer answers a question of a client, for locks with ZooKeeper. It calls next for each value, and
// blocks until next returns false, ctx or the locks end, or there is an error: then the question is
// unacceptable.
func Answer(ctx context.Context, m *manager.Manager, q *messages.Question, by *Asker, next func(value []byte) (more bool)) error {
	a, err := answeringOf(q)
	if err != nil {
		return err
	}
	t := &Target{Manager: m, Path: q.GetPath(), asker: by}
	if a.traits&ofLock != 0 {
		if t.Recipe, err = recipes.FromSpec(q.GetLock()); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.Ended(), func() { cancel(messages.Reason_CLOSED) })()
	return a.answer(ctx, t, q.GetArguments(), next)
}

func answeringOf(q *messages.Question) (a answering, err error) {
	a, is := answerings[q.GetKind()]
	if !is {
		err = check.Invalid(fmt.Sprintf("question %q: it must be one of %s", q.GetKind(), strings.Join(slices.Sorted(maps.Keys(answerings)), ", ")))
	}
	return a, err
}

func (q *asking[A, V]) answerJSON(ctx context.Context, t *Target, args []byte, next func(value []byte) (more bool)) error {
	var a A
	if len(args) > 0 {
		if err := json.Unmarshal(args, &a); err != nil {
			return check.Invalid(fmt.Sprintf("arguments of the question %q: %v", q.kind, err))
		}
	}
	var failed error
	q.answer(t, ctx, a, func(value V, err error) bool {
		if v, is := any(&value).(*Snapshot); is {
			v.setLocal(t)
		}
		var text []byte
		if text, failed = json.Marshal(answerJSON[V]{value, errorJSONOf(err)}); failed != nil {
			return false
		}
		return next(text)
	})
	return failed
}

// setLocal marks the contenders whose nodes belong to requests of the client that asks, for the lock
// of t.
func (q *Snapshot) setLocal(t *Target) {
	made := map[[16]byte]bool{} // by the UUIDs in the names
	for _, r := range t.Manager.OpenAbove(t.Path) {
		if t.asker == nil || !t.asker.Owns(r.From) {
			continue
		}
		if r.Granted != nil {
			r.Nodes = lock.NodesOf(r.Granted)
		}
		for _, node := range r.Nodes {
			if id, is := uuidOf(node); is {
				made[id] = true
			}
		}
	}
	q.Contenders = slices.Clone(q.Contenders)
	for i := range q.Contenders {
		id, is := uuidOf(q.Contenders[i].Node)
		q.Contenders[i].Local = is && made[id]
	}
}

func uuidOf(node string) ([16]byte, bool) { return queue.UUID(node[strings.LastIndex(node, "/")+1:]) }

// PathsOf returns the paths that a question touches, and reports whether it has something changed
// there. The error is that the question or a path is not acceptable.
func PathsOf(q *messages.Question) (paths []string, changes bool, err error) {
	a, err := answeringOf(q)
	if err != nil {
		return nil, false, err
	}
	path := q.GetPath()
	switch paths = []string{path}; {
	case a.traits&ofEnsemble != 0:
		paths = nil
	case a.traits&ofLock != 0:
		var r *manager.Recipe
		if r, err = recipes.FromSpec(q.GetLock()); err == nil {
			paths, err = recipes.PathsOf(path, r)
		}
	case a.traits&ofNode != 0:
		paths, err = pathsOfNode(path)
	case a.traits&ofCount != 0:
		err = check.CountPath(path)
	case a.traits&ofTree != 0:
		err = checkTree(path)
	default:
		err = check.Path(path)
	}
	return paths, a.traits&changing != 0, err
}

// pathsOfNode returns the paths of the locks that a contender's node may be of: its directory, and the
// path of a semaphore that has such a directory.
func pathsOfNode(node string) ([]string, error) {
	directory, name := zkpath.Split(node)
	if err := errors.Join(check.Path(directory), zkpath.CheckName(name)); err != nil {
		return nil, check.Invalid(fmt.Sprintf("node %q: %v", node, err))
	}
	paths := []string{directory}
	for _, suffix := range []string{queue.LeasesSuffix, queue.RequestQueueSuffix, queue.KazooRequestQueueSuffix} {
		if path, is := strings.CutSuffix(directory, suffix); is && check.Path(path) == nil {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// answerJSON is an answer on its way: a value may come with an error, which says that it is not
// complete.
type answerJSON[V any] struct {
	Value V          `json:"value"`
	Error *errorJSON `json:"error,omitempty"`
}

// errorJSON is an error on its way: its text, and what errors.Is finds.
type errorJSON struct {
	Text    string                `json:"text"`
	Reasons []messages.Reason     `json:"reasons,omitempty"`
	Skipped map[string]*errorJSON `json:"skipped,omitempty"` // of Skipped
}

func errorJSONOf(err error) *errorJSON {
	if err == nil {
		return nil
	}
	e := &errorJSON{Text: err.Error()}
	if skipped, is := errors.AsType[Skipped](err); is {
		e.Skipped = map[string]*errorJSON{}
		for directory, why := range skipped {
			e.Skipped[directory] = errorJSONOf(why)
		}
		return e
	}
	for _, r := range slices.Sorted(maps.Keys(messages.Reason_name)) {
		if errors.Is(err, messages.Reason(r)) {
			e.Reasons = append(e.Reasons, messages.Reason(r))
		}
	}
	return e
}

func (e *errorJSON) asError() error {
	switch {
	case e == nil:
		return nil
	case e.Skipped != nil:
		skipped := Skipped{}
		for directory, why := range e.Skipped {
			skipped[directory] = why.asError()
		}
		return skipped
	}
	var reasons []error
	for _, r := range e.Reasons {
		reasons = append(reasons, r)
	}
	return &summary{errors.Join(reasons...), e.Text}
}
