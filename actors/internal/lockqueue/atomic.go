package lockqueue

import "github.com/actorlock/actorlock/actors/queue"

// OwnerStanding is what the owner of a new request has of the lock already.
type OwnerStanding struct {
	// Known reports whether the owner waits for the lock or holds it.
	Known bool
	// AtomicCreate is the Acquire.AtomicCreate of the node that the new request would enter; 0 if
	// that node was made alone, or if the request would enter none.
	AtomicCreate uint64
}

// Standing returns what an owner has of the lock that bears on its new request for a kind.
// An owner without a name has nothing.
func (s *State) Standing(name string, kind queue.Kind) (standing OwnerStanding) {
	if name == "" {
		return standing
	}
	mayEnter := s.rule.EntersFrom(kind)
	for k := range s.rule.BlockedBy {
		has := s.owners[owner{name, queue.Kind(k)}]
		switch {
		case has == nil:
			continue
		case has.kind == kind && mayEnter.Has(kind):
			return OwnerStanding{Known: true, AtomicCreate: has.atomicCreate}
		case has.stage == held && mayEnter.Has(has.kind):
			standing.AtomicCreate = has.atomicCreate
		}
		standing.Known = true
	}
	return standing
}
