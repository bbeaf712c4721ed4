package recipes

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
)

// With returns the recipe with options, each of which changes its name. Handles and a lock server
// make their recipes by it, so that both have the same names and the same limits.
func With(r *manager.Recipe, options []func(*manager.Recipe) error) (*manager.Recipe, error) {
	if len(options) == 0 {
		return r, nil
	}
	changed := *r
	for _, option := range options {
		if err := option(&changed); err != nil {
			return nil, err
		}
	}
	if changed.RequireDirectory {
		changed.Name += " in a directory that must exist"
	}
	if q := changed.LocalQueue; q != nil { // last of all, so that the order of options does not matter
		changed.Name += fmt.Sprintf(" with a local queue (%d grants, %v, lingering %v)", q.Grants, q.Time, q.Linger)
		changed.NewActor = newLocalQueue
	}
	return &changed, nil
}

// maxDelay is the longest lock-delay, as in Chubby and in Consul.
const maxDelay = time.Minute

// Delay is the option of a lock-delay.
func Delay(d time.Duration) func(*manager.Recipe) error {
	return func(r *manager.Recipe) error {
		switch {
		case d <= 0 || d > maxDelay:
			return check.Invalid(fmt.Sprintf("lock-delay %v: it must be positive and at most %v", d, maxDelay))
		case r.Delay > 0:
			return check.Invalid(fmt.Sprintf("lock-delay %v: there is one of %v already", d, r.Delay))
		case !reflect.DeepEqual(r.Rule, queue.Mutex()):
			return check.Invalid(fmt.Sprintf("lock-delay %v: only a mutex can have one, not a %s", d, r.Name))
		}
		r.Name = fmt.Sprintf("%s with a lock-delay of %v", r.Name, d)
		r.Delay, r.Rule.Delay = d, true
		return nil
	}
}

// defaultLocalQueue is the budget of a local queue for which none is given.
var defaultLocalQueue = manager.LocalQueueConfig{Grants: 1000, Time: 100 * time.Millisecond, Linger: time.Second}

// LocalQueue is the option of a local queue.
func LocalQueue(c manager.LocalQueueConfig) func(*manager.Recipe) error {
	return func(r *manager.Recipe) error {
		d := defaultLocalQueue
		switch {
		case c.Grants < 0:
			return check.Invalid(fmt.Sprintf("LocalQueueConfig.Grants %d: it must be positive, or 0 for %d", c.Grants, d.Grants))
		case c.Time < 0:
			return check.Invalid(fmt.Sprintf("LocalQueueConfig.Time %v: it must be positive, or 0 for %v", c.Time, d.Time))
		case c.Linger < 0:
			return check.Invalid(fmt.Sprintf("LocalQueueConfig.Linger %v: it must be positive, or 0 for %v", c.Linger, d.Linger))
		case r.Rule.Permits != 1 || r.Rule.OwnMarkersOnly:
			return check.Invalid(fmt.Sprintf("LocalQueue for a %s: only a mutex or a read-write lock is accepted", r.Name))
		}
		r.LocalQueue = &manager.LocalQueueConfig{Grants: cmp.Or(c.Grants, d.Grants), Time: cmp.Or(c.Time, d.Time), Linger: cmp.Or(c.Linger, d.Linger)}
		return nil
	}
}

// CheckPermits returns an error for the recipe of a semaphore with a number of permits that none can
// have.
func CheckPermits(r *manager.Recipe) error {
	if r.Permits < 1 || r.Permits > math.MaxInt32 {
		return check.Invalid(fmt.Sprintf("%v permits: it must have from 1 to %d", r, math.MaxInt32))
	}
	return nil
}

// SharedPermits is the option of a semaphore that a node says how many permits there are.
func SharedPermits(path string) func(*manager.Recipe) error {
	return func(r *manager.Recipe) error {
		if r.Permits == 0 {
			return check.Invalid(fmt.Sprintf("SharedPermits(%q): a %v has no permits", path, r))
		}
		if err := check.CountPath(path); err != nil {
			return err
		}
		required := r.RequireDirectory
		*r = *Semaphore(r.Permits, path)
		r.RequireDirectory = required
		return nil
	}
}

// RequireDirectory is the option that the lock's directory must exist.
func RequireDirectory(r *manager.Recipe) error {
	if r.Permits == 0 && r.Rule.BlockedBy == nil {
		return check.Invalid(fmt.Sprintf("RequireDirectory: a %v has no directory of its own", r))
	}
	r.RequireDirectory = true
	return nil
}

// MultiLock returns the recipe of the multi-lock of the members. Beside an error it returns the
// recipe of the acceptable members before the one that is not. The recipe's name is the path of its actor.
func MultiLock(members []manager.Member) (*manager.Recipe, error) {
	r := &manager.Recipe{Kinds: []string{"exclusive"}, NewActor: newMultiLock, Members: []manager.Member{}}
	var names []string
	err := checkCount(len(members))
	for i, m := range members {
		if err == nil {
			err = checkMember(m, members[:i])
		}
		if err != nil {
			break
		}
		names = append(names, fmt.Sprintf("%s (%s)", m.Path, m.Recipe.KindName(m.Kind)))
		r.Members = append(r.Members, m)
	}
	r.Name = "multi-lock of " + strings.Join(names, ", ")
	return r, err
}

func checkCount(members int) error {
	if members == 0 || members > zkbridge.MaxAtomicCreates {
		return check.Invalid(fmt.Sprintf("multi-lock of %d members: it must have 1 to %d", members, zkbridge.MaxAtomicCreates))
	}
	return nil
}

func checkMember(m manager.Member, before []manager.Member) error {
	switch {
	case m.Recipe.Members != nil:
		return check.Invalid(fmt.Sprintf("multi-lock: %s is one itself: give its members instead", m.Path))
	case m.Recipe.LocalQueue != nil:
		return check.Invalid(fmt.Sprintf("multi-lock: %s has a local queue, which keeps it beyond a request", m.Path))
	}
	for _, other := range before {
		if other.Path == m.Path {
			return check.Invalid(fmt.Sprintf("multi-lock: %s is given twice", m.Path))
		}
	}
	return nil
}
