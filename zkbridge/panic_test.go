package zkbridge

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// panickingRecipient takes so many messages, and panics at each further one.
type panickingRecipient struct {
	mailbox
	takes atomic.Int32
}

func (p *panickingRecipient) Tell(msg any) {
	p.mailbox.Tell(msg)
	if p.takes.Add(-1) < 0 {
		panic("recipient")
	}
}

// receive waits for the next message.
func (p *panickingRecipient) receive(t *testing.T) {
	t.Helper()
	select {
	case <-p.mailbox:
	case <-time.After(timeLimit):
		t.Fatal("the recipient receives no more message")
	}
}

// A recipient that panics at a message does not end the bridge.
func TestPanicOfRecipient(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		system := host.NewSystem(nil, nil)
		t.Cleanup(system.Close)
		var log bridgeLog
		opened, err := Open(system, log.config(t, Config{Servers: s.Addr()}))
		must(t, err)
		b := opened.Internals()
		t.Cleanup(func() { b.Close() })
		must(t, b.Connected(t.Context()))
		u, dir := newUser(t, b), s.Path(t)
		node := u.created(dir, "n-").GetNode()
		bad, ref := &panickingRecipient{mailbox: make(mailbox, 100)}, b.Ref()

		ref.SendSubscribe(&messages.Subscribe{}, bad)
		ref.SendCreate(&messages.Create{Epoch: 1, Directory: dir, Prefix: "bad-"}, bad)
		ref.SendCreate(&messages.Create{Epoch: 1, Directory: "relative", Prefix: "bad-"}, bad)
		b.CreateAtomically([]*Create{b.NewCreate(bad, &messages.Create{Epoch: 1, Directory: dir, Prefix: "one-"}), b.NewCreate(bad, &messages.Create{Epoch: 1, Directory: dir, Prefix: "two-"})})
		b.CreateAtomically([]*Create{b.NewCreate(bad, &messages.Create{Epoch: 1, Directory: "relative", Prefix: "bad-"})})
		ref.SendList(&messages.List{Epoch: 1, Directory: dir, Watch: true}, bad)
		ref.SendWatch(&messages.Watch{Epoch: 1, Directory: dir, Nodes: []string{node}}, bad)
		ref.SendTransact(&messages.Transact{Epoch: 1, Ops: []*messages.Op{{Kind: messages.Op_SET, Path: dir + "/" + node}}}, bad)
		const answers = 9
		for range answers {
			bad.receive(t)
		}
		u.release(dir, node)
		if m := next[*messages.NodeReleased](u); m.GetMissing() {
			t.Errorf("%v", m)
		}
		ref.SendReleaseNode(&messages.ReleaseNode{Epoch: 1, Directory: dir, Node: node}, bad)
		bad.receive(t) // of the release, or a Wake
		u.keepsSession()
		if text := log.String(); strings.Count(text, "a recipient panics") < answers || !strings.Contains(text, "panic_test.go") {
			t.Errorf("the log is: %s", text)
		}
		for _, name := range s.Nodes(t, dir) {
			must(t, s.Client(t).Delete(dir+"/"+name, -1))
		}
	})
}
