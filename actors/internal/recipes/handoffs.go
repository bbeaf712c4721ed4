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
func (d *directory) noteGone(node string) {
	if node != "" && !d.state.IsOwn(node) {
		d.left = remoteDeparture
	}
}

// countHandOff counts the grant that an event has led to. A contender that is granted with its
// creation or its re-entry had nothing to wait for.
func (d *directory) countHandOff(event any) {
	switch event.(type) {
	case lockqueue.Created, lockqueue.Acquire:
	default:
		if d.left != noDeparture {
			d.in.CountHandOff(d.left == localDeparture)
		}
	}
	d.left = noDeparture
}
