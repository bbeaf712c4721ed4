package actors

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// recipe is what makes the actor of one path the lock that it is.
type recipe struct {
	name       string // "mutex", and whatever else tells it from others of the same rule
	rule       queue.Rule
	kinds      []string          // what may be asked for, by queue.Kind
	delay      time.Duration     // see LockDelay
	maxPermits uint32            // permits that one request may ask for; 0 where there are none
	deps       []dependency      // what its actor builds upon
	local      *LocalQueueConfig // its owners in this process are to share a node
	unlisted   bool              // its nodes are no contenders': there is nobody to list or to revoke
	newActor   func(*actorEntry) host.Actor

	kindNumbers []messages.Kind // of kinds in an Acquire; nil for a recipe with one kind, EXCLUSIVE

	memberKinds []queue.Kind // of a multi-lock: what its members are wanted for
	permits     int          // of a semaphore; 0 for others
	countPath   string       // the node that says how many, if permits are only what it begins with
}

// dependency is a lock below another one: at a path of its own, or at the other one's path
// and suffix, such as "/leases", or, with neither, at the same path, where others do
// not see it.
type dependency struct {
	path   string
	suffix string
	recipe *recipe
}

// keyAndPath is where it is, below an actor of the given key and path.
func (l dependency) keyAndPath(key, path string) (string, string) {
	switch {
	case l.path != "":
		return l.path, l.path
	case l.suffix != "":
		return path + l.suffix, path + l.suffix
	}
	return "below " + key, path
}

// same tells whether two handles mean the same kind of lock.
func (r *recipe) same(as *recipe) bool {
	return r == as || r.name == as.name && r.maxPermits == as.maxPermits &&
		slices.Equal(r.kinds, as.kinds) && reflect.DeepEqual(r.rule, as.rule)
}

// String names the recipe for people.
func (r *recipe) String() string { return r.name }

var (
	mutex     = &recipe{name: "mutex", rule: queue.Mutex(), kinds: []string{"exclusive"}, newActor: newLock}
	readWrite = &recipe{name: "read-write lock", rule: queue.ReadWrite(), kinds: []string{"write", "read"}, kindNumbers: readWriteNumbers, newActor: newLock}
)

var readWriteNumbers = []messages.Kind{queue.Exclusive: messages.Kind_WRITE, queue.Shared: messages.Kind_READ}

// kindOf returns the kind by its number in an Acquire; the error says which numbers the
// recipe has. The number 0 never stands for one of several kinds, as it is what a sender
// that does not know of kinds has sent.
func (r *recipe) kindOf(number uint32) (queue.Kind, error) {
	if r.kindNumbers == nil {
		if number != uint32(messages.Kind_EXCLUSIVE) {
			return 0, fmt.Errorf("kind %d: a %s has one kind, %d", number, r.name, messages.Kind_EXCLUSIVE)
		}
		return 0, nil
	}
	if i := slices.Index(r.kindNumbers, messages.Kind(number)); i >= 0 {
		return queue.Kind(i), nil
	}
	var all []string
	for i, number := range r.kindNumbers {
		all = append(all, fmt.Sprintf("%d (%s)", number, r.kinds[i]))
	}
	slices.Sort(all)
	return 0, fmt.Errorf("kind %d: a %s has the kinds %s", number, r.name, strings.Join(all, ", "))
}

// LockOption sets something for a lock as a whole, in this process. All handles of
// one path must have the same: requests of another one end with ErrInvalid while the
// first is in use.
type LockOption func(*recipe) error

// with is the recipe with options, which see to it that its name tells of them.
func (r *recipe) with(options []LockOption) (*recipe, error) {
	if len(options) == 0 {
		return r, nil
	}
	changed := *r
	for _, option := range options {
		if option == nil {
			return nil, invalid("a lock option is nil: leave it out")
		}
		if err := option(&changed); err != nil {
			return nil, err
		}
	}
	if changed.local != nil { // last of all, so that the order of options does not matter
		return changed.withLocalQueue(), nil
	}
	return &changed, nil
}
