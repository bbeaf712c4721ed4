package recipes

import "github.com/actorlock/actorlock/actors/internal/lockqueue"

// departure is where the contender that left a lock last was: in this process or in another.
type departure uint8

const (
	noDeparture departure = iota
	localDeparture
	remoteDeparture
)

// noteGone notes that the node of a contender was deleted.
func (l *lockActor) noteGone(node string) {
	if node != "" && !l.state.IsOwn(node) {
		l.left = remoteDeparture
	}
}

// countHandOff counts the grant that an event has led to. A contender that is granted with its
// creation or its re-entry had nothing to wait for.
func (l *lockActor) countHandOff(event any) {
	switch event.(type) {
	case lockqueue.Created, lockqueue.Acquire:
	default:
		if l.left != noDeparture {
			l.CountHandOff(l.left == localDeparture)
		}
	}
	l.left = noDeparture
}
