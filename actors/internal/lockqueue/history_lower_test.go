package lockqueue

import "github.com/actorlock/actorlock/actors/internal/requests"

// lowerState is the State of one lock in one process, and the requests of the machine above.
type lowerState struct {
	lock      *model
	process   *process
	bySerial  map[uint64]*nodeRequest
	byID      map[requests.ID]*nodeRequest
	toState   []func()  // messages of the machine that have not reached the State
	toMachine []message // messages of the State that have not reached the machine
}

// nodeRequest is a request of a machine for one node.
type nodeRequest struct {
	serial uint64
	id     requests.ID
	node   string // by which it was granted
	lost   bool
}

// message is an answer of a State to the request with the serial.
type message struct {
	serial uint64
	Effect
}

// onEffect sends the machine an effect that concerns one of its requests.
func (l *lowerState) onEffect(e Effect) {
	switch e.Kind {
	case Grant, Refuse, Lose, ConfirmRelease, NotifyContended:
	default:
		return
	}
	r := l.byID[e.ID]
	switch e.Kind {
	case Grant:
		r.node = e.Node
	case Lose:
		r.lost = true
	}
	l.toMachine = append(l.toMachine, message{r.serial, e})
}

// acquire, cancel and release do what the actor of a State does with the messages of a machine.
func (l *lowerState) acquire(serial uint64, e Acquire) {
	l.lock.ids++
	e.ID = l.lock.ids
	r := &nodeRequest{serial: serial, id: e.ID}
	l.bySerial[serial], l.byID[e.ID] = r, r
	l.process.open[e.ID] = "waiting"
	if e.NotifyContended {
		l.process.wantsContention[e.ID] = true
	}
	l.lock.step(l.process, e)
}

func (l *lowerState) cancel(serial uint64) {
	if r := l.bySerial[serial]; l.process.open[r.id] != "" {
		l.lock.step(l.process, Cancel{ID: r.id, Reason: requests.Cancelled})
	}
}

func (l *lowerState) release(serial uint64) {
	r := l.bySerial[serial]
	if l.process.open[r.id] != "held" {
		l.toMachine = append(l.toMachine, message{serial, Effect{Kind: Refuse, Reason: requests.NotHeld}})
		return
	}
	l.lock.release(l.process, r.id)
}

func (l *lowerState) send(message func()) { l.toState = append(l.toState, message) }
