package simulation

import (
	"fmt"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// askByFuture makes the request of an entry by protoactor's RequestFuture. One that times out may be
// granted the lock later, and can never release it.
func (w *world) askByFuture(e entry) {
	p := w.slots[e.slot]
	if p == nil || !p.isUp() || p.frozen || p.system == nil || len(w.open)+len(w.owners) > maxOpen {
		return
	}
	rnd := e.rand()
	a := p.alone(rnd)
	pid, err := a.Member.(withPID).PID()
	if err != nil {
		w.line("%s: no PID of %s: %v", p.name, a.Path(), err)
		return
	}
	w.asked++
	o := &owner{w: w, p: p, id: w.asked, rand: rnd, uses: []use{a.use}, path: a.Path(), lock: pid, asked: w.now(), since: w.now()}
	o.name = fmt.Sprint("future ", o.id)
	msg := &messages.Acquire{RequestId: 1, Owner: o.name, Permits: uint32(a.permits), Kind: a.number()}
	if a.permits == 1 {
		msg.Permits = 0
	}
	timeout := time.Duration(1 + rnd.Int64N(int64(200*time.Millisecond)))
	w.line("future %d of %s asks for %s: timeout %v", o.id, p.name, describe(o.uses), timeout)
	w.owners = append(w.owners, o)
	w.futures = true
	o.ask(msg, timeout)
}

// ask sends a message by a future, and puts the answer in the inbox. pid is the PID of the last future.
func (o *owner) ask(msg any, timeout time.Duration) {
	future := o.p.system.Root.RequestFuture(o.lock, msg, timeout)
	o.pid = future.PID()
	go func() {
		answer, err := future.Result()
		o.mu.Lock()
		defer o.mu.Unlock()
		if err != nil {
			answer = err
		}
		o.inbox = append(o.inbox, answer)
	}()
}

// timedOut takes the end of a future without an answer, or with the answer of a closed lock.
func (o *owner) timedOut(err error) {
	o.w.line("future %d ends: %v", o.id, err)
	o.finish()
}
