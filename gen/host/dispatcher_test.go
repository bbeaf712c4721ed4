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

// A mailbox that is scheduled just when the dispatcher is closed is not served by the sender,
// which may hold a lock that the actor needs.
func TestClosedWhileTelling(t *testing.T) {
	d := &dispatcher{runQueue: make(chan *Ref, 1), quit: make(chan struct{})}
	l := &locking{received: make(chan struct{})}
	r := &Ref{system: &System{Logger: slog.New(slog.DiscardHandler)}, dispatcher: d, handler: l}
	r.mailbox.start()
	r.mailbox.put("message", nil)
	d.runQueue <- r
	d.close()
	l.Lock()
	returned := make(chan struct{})
	go func() {
		d.drainIfClosed()
		close(returned)
	}()
	select {
	case <-returned:
	case <-time.After(time.Minute):
		t.Error("the sender waits for the actor")
	}
	l.Unlock()
	<-returned
	<-l.received
}
