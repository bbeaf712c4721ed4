package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/requests"
)

// below is a directory as a machine above it uses it: a local queue, or the machine of a semaphore.
// The machine names its requests by serials. What the two have for each other waits in the turn
// until the call in hand is over, so that neither is called while it decides.
type below struct {
	*turn
	directory *directory
	machine   machine
	open      requests.Table[nodeRequest]
	bySerial  map[uint64]requests.ID // of open
	last      uint32
}

// nodeRequest is an open request of a machine.
type nodeRequest struct {
	serial  uint64
	granted bool
}

// machine is what a below answers. Each of its requests gets nodeRefused, nodeLost or nodeReleased
// in the end.
type machine interface {
	nodeGranted(serial uint64, node string, token requests.Token)
	nodeRefused(serial uint64, why requests.Reason)
	nodeLost(serial uint64, why requests.Reason)
	nodeReleased(serial uint64)
	nodeRevoked(serial uint64)
	nodeContended(serial uint64)
}

// turn holds the calls between a machine and its directories that are due within the message in
// hand.
type turn struct {
	due  []func()
	over bool // the actor is closed: calls come to nothing
}

func (t *turn) later(call func()) {
	if !t.over {
		t.due = append(t.due, call)
	}
}

// finish makes the calls that are due. It is called at the end of each message.
func (t *turn) finish() {
	for i := 0; i < len(t.due); i++ {
		t.due[i]()
		t.due[i] = nil
	}
	t.due = t.due[:0]
}

// releaseMemory frees what is not in use. It is called at a tick before which the actor was idle.
func (b *below) releaseMemory() { b.open, b.bySerial, b.due = requests.Table[nodeRequest]{}, nil, nil }

// ---- from the machine to the directory

// acquire has a request begin, with an atomic create if its node is to be made together with those
// of other locks.
func (b *below) acquire(serial uint64, r requests.Incoming, with *atomicCreate) {
	b.later(func() { b.begin(serial, r, with) })
}

// acquireTogether has a request begin for each serial, and one transaction make all their nodes, or
// several in a row if they do not fit into one.
func (b *below) acquireTogether(serials []uint64, r requests.Incoming) {
	b.later(func() {
		b.directory.acquireTogether(func() {
			for _, serial := range serials {
				b.begin(serial, r, nil)
			}
		})
	})
}

func (b *below) begin(serial uint64, r requests.Incoming, with *atomicCreate) {
	b.last++
	r.ID = b.open.Add(b.last, &nodeRequest{serial: serial})
	if b.bySerial == nil {
		b.bySerial = map[uint64]requests.ID{}
	}
	b.bySerial[serial] = r.ID
	b.directory.acquire(r, with)
}

// cancel withdraws a request, or takes back what it was granted. It does nothing for one that has
// ended.
func (b *below) cancel(serial uint64) {
	b.later(func() {
		id := b.bySerial[serial]
		if r := b.open.At(id); r != nil {
			b.directory.cancel(id, r.granted, false, requests.Cancelled)
		}
	})
}

// release takes back a grant.
func (b *below) release(serial uint64) {
	b.later(func() {
		if id := b.bySerial[serial]; id != 0 {
			b.directory.release(id)
			return
		}
		b.machine.nodeRefused(serial, requests.NotHeld) // it was lost before
	})
}

// ---- from the directory to the machine: below is above its directory

// end forgets a request and returns its serial.
func (b *below) end(id requests.ID) uint64 {
	serial := b.open.At(id).serial
	b.open.Remove(id)
	delete(b.bySerial, serial)
	return serial
}

// GrantNode implements above.
func (b *below) GrantNode(id requests.ID, node string, token requests.Token) {
	r := b.open.At(id)
	r.granted = true
	b.later(func() { b.machine.nodeGranted(r.serial, node, token) })
}

// RefuseRequest implements above.
func (b *below) RefuseRequest(id requests.ID, why requests.Reason) {
	serial := b.end(id)
	b.later(func() { b.machine.nodeRefused(serial, why) })
}

// Lose implements above.
func (b *below) Lose(id requests.ID, why requests.Reason) {
	serial := b.end(id)
	b.later(func() { b.machine.nodeLost(serial, why) })
}

// ConfirmRelease implements above.
func (b *below) ConfirmRelease(id requests.ID, _ int) {
	serial := b.end(id)
	b.later(func() { b.machine.nodeReleased(serial) })
}

// RequestRevoke implements above.
func (b *below) RequestRevoke(id requests.ID) {
	serial := b.open.At(id).serial
	b.later(func() { b.machine.nodeRevoked(serial) })
}

// NotifyContended implements above.
func (b *below) NotifyContended(id requests.ID) {
	serial := b.open.At(id).serial
	b.later(func() { b.machine.nodeContended(serial) })
}
