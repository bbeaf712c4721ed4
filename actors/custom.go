package actors

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/check"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/recipes"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Custom is a lock by a rule of your own: the rule has the kinds that the lock can be held for,
// and says which kinds exclude each other. In all else it is like a Mutex: across processes, fair
// in the order of arrival, cancellable, with tokens. It is a cheap handle, too.
//
// A request waits for all contenders ahead of it that block its kind, whether they hold or wait. So
// two kinds exclude each other if each is in the other's BlockedBy; if one of them is not, it
// passes the other and holds beside it. There is no order other than the order of arrival:
// ZooKeeper does not show whether a contender ahead holds already or has yet to notice that it may.
// A contender that overtakes it could hold beside it, unless each holder first left a marker, which
// would cost every acquire another write.
type Custom struct {
	manager *manager.Manager
	path    string
	recipe  *recipe
	problem error // what is wrong with the recipe, or nil
	modes   []ModeLock
}

// Custom returns the lock at path by the rule. name is the name of the rule in errors, and kinds
// are the names of its kinds, in the order of their numbers in the rule. (An Acquire of an actor
// numbers several kinds from 1: 0 is refused.) All processes that use the path must use one rule
// for it; nothing checks that across processes.
//
// The rule has Permits of at least 1. For each kind, 64 at most, it has an entry in BlockedBy
// and a marker of its own, such as "-intent-read-", as part of its nodes' names. No marker may
// end as another does. Only children with one of the markers count: "-lock-" includes those of a
// Curator's mutex, and "__lock__" those of kazoo's. Reenter may be empty. Otherwise it has an
// entry for each kind, too: the kind itself if the kind is re-entrant, and other kinds from which
// a holder may change to this kind and keep its place. Such a change needs Permits 1, and the
// kind may exclude no contender that the other kind does not exclude. An owner that would wait
// for itself gets ErrDeadlock if Permits is 1; with more permits that is not checked.
//
// It does not block or ask ZooKeeper: an unacceptable rule or path shows at the first request,
// as ErrInvalid. Locks of a lock server, which does not know the rule, refuse all its requests.
func (l *Locks) Custom(path, name string, rule queue.Rule, kinds ...string) *Custom {
	r := recipes.Custom(name, rule, kinds)
	c := &Custom{manager: l.manager, path: path, recipe: r, problem: cmp.Or(checkCustom(r), l.needsZooKeeper("a lock by a rule of your own", "use another recipe")), modes: make([]ModeLock, len(kinds))}
	for k := range kinds {
		c.modes[k] = ModeLock{c.handle(queue.Kind(k), c.problem)}
	}
	return c
}

func (c *Custom) handle(kind queue.Kind, problem error) handle {
	return handle{manager: c.manager, path: c.path, recipe: c.recipe, kind: kind, problem: problem}
}

// Kind returns the lock as it is held for the kind of the given name.
func (c *Custom) Kind(name string) *ModeLock {
	problem := c.problem
	if problem == nil {
		if k := slices.Index(c.recipe.Kinds, name); k >= 0 {
			return &c.modes[k]
		}
		problem = check.Invalid(fmt.Sprintf("kind %q: a %s has %s", name, c.recipe, strings.Join(c.recipe.Kinds, ", ")))
	}
	return &ModeLock{c.handle(0, problem)}
}

func checkCustom(r *recipe) error {
	if r.Name == "" {
		return check.Invalid("custom lock: it must have a name")
	}
	if err := r.Rule.Check(r.Kinds); err != nil {
		return check.Invalid(fmt.Sprintf("rule of a %s: %v", r.Name, err))
	}
	for k, marker := range r.Rule.Markers {
		if err := zkpath.Check("/" + marker); err != nil {
			return check.Invalid(fmt.Sprintf("rule of a %s: kind %q: marker %q cannot be in a node's name: %v", r.Name, r.Kinds[k], marker, err))
		}
	}
	return nil
}
