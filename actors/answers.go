package actors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// answer answers a question of a client of these Locks. mine reports whether a request is the
// client's, and may be nil.
func (l *Locks) answer(ctx context.Context, q *messages.Question, mine func(from ask.Recipient) bool, next func(value []byte) (more bool)) error {
	a, is := answerings[q.GetKind()]
	if !is {
		return check.Invalid(fmt.Sprintf("question %q: it must be one of %s", q.GetKind(), strings.Join(slices.Sorted(maps.Keys(answerings)), ", ")))
	}
	h := l.at(q.GetPath())
	if a.traits&ofLock != 0 {
		var err error
		if h.recipe, err = recipes.FromSpec(q.GetLock()); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.closed, func() { cancel(ErrClosed) })()
	return a.answer(ctx, h, q.GetArguments(), mine, next)
}

func (q *asking[A, V]) answerJSON(ctx context.Context, h *handle, args []byte, mine func(from ask.Recipient) bool, next func(value []byte) (more bool)) error {
	var a A
	if len(args) > 0 {
		if err := json.Unmarshal(args, &a); err != nil {
			return check.Invalid(fmt.Sprintf("arguments of the question %q: %v", q.kind, err))
		}
	}
	var failed error
	q.answer(h, ctx, a, func(value V, err error) bool {
		if v, is := any(&value).(*Queue); is {
			v.setMine(h, mine)
		}
		var text []byte
		if text, failed = json.Marshal(answerJSON[V]{value, errorJSONOf(err)}); failed != nil {
			return false
		}
		return next(text)
	})
	return failed
}

// setMine has those participants be this process's whose nodes are of requests for the lock of h of
// which mine returns true.
func (q *Queue) setMine(h *handle, mine func(from ask.Recipient) bool) {
	made := map[[16]byte]bool{} // by the UUIDs in the names
	for _, r := range h.manager.OpenAbove(h.path) {
		if mine == nil || !mine(r.From) {
			continue
		}
		if r.Granted != nil {
			r.Nodes = nodePaths(r.Granted)
		}
		for _, node := range r.Nodes {
			if id, is := uuidOf(node); is {
				made[id] = true
			}
		}
	}
	q.Participants = slices.Clone(q.Participants)
	for i := range q.Participants {
		id, is := uuidOf(q.Participants[i].Node)
		q.Participants[i].Mine = is && made[id]
	}
}

func uuidOf(node string) ([16]byte, bool) { return queue.UUID(node[strings.LastIndex(node, "/")+1:]) }

// pathsOf returns the paths of the locks and counts that a question is about, and reports whether it
// has something changed there.
func pathsOf(q *messages.Question) (paths []string, changes bool) {
	traits := answerings[q.GetKind()].traits
	changes = traits&changing != 0
	switch {
	case traits&ofEnsemble != 0:
		return nil, changes
	case traits&ofLock != 0:
		return recipes.PathsOf(q.GetPath(), q.GetLock()), changes
	case traits&ofNode == 0:
		return []string{q.GetPath()}, changes
	}
	directory, _ := zkpath.Split(q.GetPath())
	for _, suffix := range []string{queue.LeasesSuffix, queue.RequestQueueSuffix} {
		if path, is := strings.CutSuffix(directory, suffix); is {
			return []string{path}, changes
		}
	}
	return []string{directory}, changes
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
	Skipped map[string]*errorJSON `json:"skipped,omitempty"` // of a SkippedError
}

func errorJSONOf(err error) *errorJSON {
	if err == nil {
		return nil
	}
	e := &errorJSON{Text: err.Error()}
	if skipped, is := errors.AsType[*SkippedError](err); is {
		e.Skipped = map[string]*errorJSON{}
		for directory, why := range skipped.Reasons {
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
		skipped := &SkippedError{map[string]error{}}
		for directory, why := range e.Skipped {
			skipped.Reasons[directory] = why.asError()
		}
		return skipped
	}
	answered := &answeredError{text: e.Text}
	for _, r := range e.Reasons {
		answered.reasons = append(answered.reasons, r)
	}
	return answered
}

// answeredError is an error that a lock server has answered.
type answeredError struct {
	text    string
	reasons []error
}

func (e *answeredError) Error() string   { return e.text }
func (e *answeredError) Unwrap() []error { return e.reasons }
