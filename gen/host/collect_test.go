package host_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/gen/host"
)

// collector records the number of messages that it had received at each flush.
type collector struct {
	*probe
	flushes inbox
	fails   bool
}

func (c *collector) Flush() {
	if c.fails {
		panic("flush fails")
	}
	c.flushes.Tell(int(c.received.Load()))
}

func collect(t *testing.T, c *collector) *host.Ref {
	t.Helper()
	system := host.NewSystem(nil, nil)
	t.Cleanup(system.Close)
	ref, err := system.Spawn("collector", func(*host.Ref) host.Actor { return c })
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// A Collector is flushed when its mailbox is empty, and after every 64 messages.
func TestCollector(t *testing.T) {
	proceed := make(chan struct{})
	c := &collector{probe: newProbe(func(_ ask.Recipient, msg any) {
		if msg == "block" {
			<-proceed
		}
	}), flushes: make(inbox, 10)}
	ref := collect(t, c)
	ref.Tell("block")
	const n = 150
	for i := range n - 1 {
		ref.Tell(i)
	}
	close(proceed)
	var got []any
	for !slices.Contains(got, any(n)) {
		got = append(got, c.flushes.next(t))
	}
	if want := "[64 128 150]"; fmt.Sprint(got) != want {
		t.Errorf("flushed after %v messages, want %s", got, want)
	}
	ref.RunInlineIfIdle("one more")
	if got := c.flushes.next(t); got != n+1 {
		t.Errorf("flushed after %v messages", got)
	}
	ref.Stop()
	if failure := c.end(t); failure != nil {
		t.Error(failure)
	}
	ref.Tell("late")
	if len(c.flushes) > 0 {
		t.Error("flushed after its end")
	}
}

// A panic of Flush stops the actor, as one of Receive does.
func TestFlushFails(t *testing.T) {
	c := &collector{probe: newProbe(nil), fails: true}
	ref := collect(t, c)
	ref.Tell("message")
	if failure := c.end(t); failure != "flush fails" {
		t.Errorf("stopped because of %v", failure)
	}
}

// A message of TellAhead overtakes those of Tell, and no other of TellAhead.
func TestTellAhead(t *testing.T) {
	proceed := make(chan struct{})
	order := make(inbox, 10)
	ref := collect(t, &collector{probe: newProbe(func(_ ask.Recipient, msg any) {
		if msg == "block" {
			<-proceed
			return
		}
		order.Tell(msg)
	}), flushes: make(inbox, 10)})
	ref.Tell("block")
	ref.Tell(3)
	ref.TellAhead(1)
	ref.Tell(4)
	ref.TellAhead(2)
	close(proceed)
	for want := range 4 {
		if got := order.next(t); got != want+1 {
			t.Errorf("message %v comes as number %d", got, want+1)
		}
	}
}
