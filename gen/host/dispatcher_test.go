package host

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/gen/ask"
)

// locking is an actor that takes a lock.
type locking struct {
	sync.Mutex
	received chan struct{}
}

func (l *locking) Receive(ask.Recipient, any) {
	l.Lock()
	defer l.Unlock()
	close(l.received)
}

func (*locking) Stopped(any) {}

func (*locking) Refuse(ask.Recipient, any) {}

// The dispatcher is closed just when a mailbox has been scheduled: it is not served by the
// one who tells, who may hold a lock that the actor takes.
func TestClosedWhileTelling(t *testing.T) {
	d := &dispatcher{work: make(chan *Ref, 1), quit: make(chan struct{})}
	l := &locking{received: make(chan struct{})}
	r := &Ref{system: &System{Logger: slog.New(slog.DiscardHandler), dispatcher: d}, handler: l}
	r.mailbox.open()
	r.mailbox.put("message", false)
	d.work <- r
	d.close()
	l.Lock()
	told := make(chan struct{})
	go func() {
		d.check()
		close(told)
	}()
	select {
	case <-told:
	case <-time.After(time.Minute):
		t.Error("the one who tells waits for the actor")
	}
	l.Unlock()
	<-told
	<-l.received
}
