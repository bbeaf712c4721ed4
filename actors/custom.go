package actors

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge"
)

// Custom is a lock by a rule of your own: which kinds there are to hold it for, and which
// of them exclude each other. In all else it is like a Mutex: across processes, fair in
// the order of arrival, cancellable, with tokens. It is a cheap handle, too.
//
// A request waits for all ahead of it that block its kind, whether they hold or wait.
// So two kinds exclude each other if each is in the other's BlockedBy; where one of them
// is not, it passes by the other and holds beside it. An order other than that of
// arrival is not offered: nothing on ZooKeeper tells whether who stands ahead holds
// already or has yet to notice that it may. Who overtakes it could hold beside it,
// unless each holder first left a mark, which would cost every acquire another write.
type Custom struct {
	manager *manager
	path    string
	recipe  *recipe
	problem error // with the recipe
	sides   []ModeLock
}

// Custom gives the lock at path by the rule, which is called name in what is said of it,
// and whose kinds are called kinds, in the order of their numbers in the rule. (An Acquire
// of an actor numbers them from 1, if there are several: 0 is refused.) All who use the path
// must do so by one rule, here and in other processes; nobody checks that for them.
//
// The rule has Permits of at least 1, and for each kind, 64 at most, an entry in
// BlockedBy and a marker of its own, such as "-intent-read-", as part of its nodes' names.
// No marker may end as another does. Only children with one of the markers count, so that
// "-lock-" takes those of a Curator's mutex in, and "__lock__" kazoo's. Reenter, if there,
// has an entry for each kind, too: the kind itself for one that is re-entrant, and other
// kinds from which a holder may change to this one, keeping its place; that needs Permits
// 1 and may exclude nobody that the other kind does not exclude. An owner that would wait
// for itself gets ErrDeadlock, if Permits is 1; with more nobody looks.
//
// It does not block and does nothing yet: a rule or a path that is not acceptable shows
// at the first request, as ErrInvalid.
func (l *Locks) Custom(path, name string, rule queue.Rule, kinds ...string) *Custom {
	r, problem := customRecipe(name, rule, kinds)
	c := &Custom{manager: l.manager, path: path, recipe: r, problem: problem, sides: make([]ModeLock, len(kinds))}
	for k := range kinds {
		c.sides[k] = ModeLock{c.handle(queue.Kind(k), problem)}
	}
	return c
}

func (c *Custom) handle(kind queue.Kind, problem error) handle {
	return handle{manager: c.manager, path: c.path, recipe: c.recipe, kind: kind, problem: problem}
}

// Kind is the lock as it is held for the kind of the given name.
func (c *Custom) Kind(name string) *ModeLock {
	problem := c.problem
	if problem == nil {
		if k := slices.Index(c.recipe.kinds, name); k >= 0 {
			return &c.sides[k]
		}
		problem = invalid(fmt.Sprintf("kind %q: a %s has %s", name, c.recipe, strings.Join(c.recipe.kinds, ", ")))
	}
	return &ModeLock{c.handle(0, problem)}
}

// customRecipe keeps copies: what is the caller's may change.
func customRecipe(name string, rule queue.Rule, kinds []string) (*recipe, error) {
	rule.OwnMarkersOnly = true
	rule.BlockedBy, rule.Markers, rule.Reenter = slices.Clone(rule.BlockedBy), slices.Clone(rule.Markers), slices.Clone(rule.Reenter)
	r := &recipe{name: name, rule: rule, kinds: slices.Clone(kinds), newActor: newLock}
	if len(kinds) > 1 {
		for k := range kinds {
			r.kindNumbers = append(r.kindNumbers, messages.Kind(k+1))
		}
	}
	if name == "" {
		return r, invalid("custom lock: it must have a name")
	}
	if err := rule.Check(kinds); err != nil {
		return r, invalid(fmt.Sprintf("rule of a %s: %v", name, err))
	}
	for k, marker := range rule.Markers {
		if err := zkbridge.CheckPath("/" + marker); err != nil {
			return r, invalid(fmt.Sprintf("rule of a %s: kind %q: marker %q cannot be in a node's name: %v", name, kinds[k], marker, err))
		}
	}
	return r, nil
}
