package recipes

import (
	"fmt"
	"reflect"
	"time"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/messages"
)

// SpecOf returns a recipe as a message for a lock server. A custom recipe is INVALID: the rule of a
// user is known to the user's process only.
func SpecOf(r *manager.Recipe) (*messages.LockSpec, error) {
	s := &messages.LockSpec{Permits: uint32(r.Permits), CountPath: r.CountPath, DelayNanos: int64(r.Delay), RequireDirectory: r.RequireDirectory}
	if q := r.LocalQueue; q != nil {
		s.LocalQueue = &messages.LocalQueue{Grants: int64(q.Grants), TimeNanos: int64(q.Time), LingerNanos: int64(q.Linger)}
	}
	switch {
	case reflect.DeepEqual(r.Rule, LeaderLatch.Rule):
		s.Recipe = messages.Recipe_LEADER_LATCH
	case r.Members != nil:
		s.Recipe = messages.Recipe_MULTI_LOCK
		for _, m := range r.Members {
			lock, err := SpecOf(m.Recipe)
			if err != nil {
				return nil, err
			}
			s.Members = append(s.Members, &messages.Member{Path: m.Path, Lock: lock, Kind: m.Recipe.NumberOf(m.Kind)})
		}
	case r.Permits > 0:
		s.Recipe = messages.Recipe_SEMAPHORE
	case r.Rule.OwnMarkersOnly:
		return nil, check.Invalid(fmt.Sprintf("%s: a lock by a rule of your own needs a process with a ZooKeeper session", r.Name))
	case len(r.Kinds) > 1:
		s.Recipe = messages.Recipe_READ_WRITE
	}
	return s, nil
}

// PathsOf returns the paths that a client of the lock touches: those of locks, counts, and a
// semaphore's directories. It returns INVALID for a path that no lock can have.
func PathsOf(path string, r *manager.Recipe) (paths []string, err error) {
	locks := r.Members
	if r.Members == nil {
		locks = []manager.Member{{Path: path, Recipe: r}}
	}
	for _, l := range locks {
		if err := check.Path(l.Path); err != nil {
			return nil, err
		}
		paths = append(paths, l.Path)
		for _, d := range l.Recipe.Directories {
			paths = append(paths, l.Path+d.Suffix)
		}
		if l.Recipe.CountPath != "" {
			paths = append(paths, l.Recipe.CountPath)
		}
	}
	return paths, nil
}

// FromSpec returns the recipe that the handles of such a lock have. It returns INVALID for what no
// handle can have.
func FromSpec(s *messages.LockSpec) (*manager.Recipe, error) {
	if s.GetRecipe() != messages.Recipe_MULTI_LOCK {
		return fromSingle(s)
	}
	if _, err := withOptionsOf(s, &manager.Recipe{Name: "multi-lock"}); err != nil {
		return nil, err
	}
	if err := checkCount(len(s.Members)); err != nil {
		return nil, err
	}
	var members []manager.Member
	for _, m := range s.Members {
		r, err := fromSingle(m.GetLock())
		if err != nil {
			return nil, err
		}
		kind, err := r.KindOf(m.GetKind())
		if err != nil {
			return nil, check.Invalid(fmt.Sprintf("multi-lock: %s: %v", m.GetPath(), err))
		}
		members = append(members, manager.Member{Path: m.GetPath(), Recipe: r, Kind: kind})
	}
	r, err := MultiLock(members)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// fromSingle is FromSpec for a lock that is no multi-lock, and so no deeper than this.
func fromSingle(s *messages.LockSpec) (*manager.Recipe, error) {
	r := Mutex
	switch kind := s.GetRecipe(); {
	case s == nil:
		return nil, check.Invalid("the lock is missing: it must be given")
	case kind == messages.Recipe_READ_WRITE:
		r = ReadWrite
	case kind == messages.Recipe_SEMAPHORE:
		r = Semaphore(int(s.Permits), "")
		if err := CheckPermits(r); err != nil {
			return nil, err
		}
	case kind == messages.Recipe_LEADER_LATCH:
		r = LeaderLatch
	case kind != messages.Recipe_MUTEX:
		return nil, check.Invalid(fmt.Sprintf("recipe %v: a lock by itself must be a mutex, a read-write lock, a semaphore or a leader latch", kind))
	}
	if len(s.Members) > 0 {
		return nil, check.Invalid(fmt.Sprintf("a %v has no members", r))
	}
	return withOptionsOf(s, r)
}

// maxRemote bounds the times of a local queue that a client asks a lock server for: others cannot
// tell it from one of the server's own, which keeps its node for so long.
const maxRemote = time.Minute

// withOptionsOf returns the recipe with the options of the message.
func withOptionsOf(s *messages.LockSpec, r *manager.Recipe) (*manager.Recipe, error) {
	if s.GetPermits() != uint32(r.Permits) {
		return nil, check.Invalid(fmt.Sprintf("a %v has no permits", r))
	}
	var options []func(*manager.Recipe) error
	if d := s.GetDelayNanos(); d != 0 {
		options = append(options, Delay(time.Duration(d)))
	}
	if path := s.GetCountPath(); path != "" {
		options = append(options, SharedPermits(path))
	}
	if s.GetRequireDirectory() {
		options = append(options, RequireDirectory)
	}
	if q := s.GetLocalQueue(); q != nil {
		t, linger := time.Duration(q.TimeNanos), time.Duration(q.LingerNanos)
		if max(t, linger) > maxRemote {
			return nil, check.Invalid(fmt.Sprintf("LocalQueueConfig.Time %v, Linger %v: a lock server accepts %v at most", t, linger, maxRemote))
		}
		options = append(options, LocalQueue(manager.LocalQueueConfig{Grants: int(q.Grants), Time: t, Linger: linger}))
	}
	return With(r, options)
}
