package zkbridge

import (
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// bursting is a recipient that panics at each message.
type bursting struct{ told chan any }

func (b bursting) Tell(msg any) {
	b.told <- msg
	panic("recipient")
}

func (b bursting) hears(t *testing.T) {
	t.Helper()
	select {
	case <-b.told:
	case <-time.After(patience):
		t.Fatal("the recipient is told nothing more")
	}
}

// A recipient that panics at a message does not end the bridge.
func TestPanicOfRecipient(t *testing.T) {
	each(t, func(t *testing.T, s *zktest.Server) {
		system := host.NewSystem(nil, nil)
		t.Cleanup(system.Close)
		var log record
		b, err := Open(system, log.of(t, Config{Servers: s.Addr()}))
		must(t, err)
		t.Cleanup(func() { b.Close() })
		must(t, b.Connected(t.Context()))
		u, dir := newUser(t, b), s.Path(t)
		node := u.created(dir, "n-").GetNode()
		odd, ref := bursting{make(chan any, 100)}, b.Ref()

		ref.SendSubscribe(&messages.Subscribe{}, odd)
		ref.SendCreate(&messages.Create{Epoch: 1, Directory: dir, Prefix: "odd-"}, odd)
		ref.SendCreate(&messages.Create{Epoch: 1, Directory: "relative", Prefix: "odd-"}, odd)
		b.CreateAtomically([]CreateSpec{{odd, &messages.Create{Epoch: 1, Directory: dir, Prefix: "one-"}}, {odd, &messages.Create{Epoch: 1, Directory: dir, Prefix: "two-"}}})
		b.CreateAtomically([]CreateSpec{{odd, &messages.Create{Epoch: 1, Directory: "relative", Prefix: "odd-"}}})
		ref.SendList(&messages.List{Epoch: 1, Directory: dir, Watch: true}, odd)
		ref.SendWatch(&messages.Watch{Epoch: 1, Directory: dir, Nodes: []string{node}}, odd)
		ref.SendTransact(&messages.Transact{Epoch: 1, Ops: []*messages.Op{{Kind: messages.Op_SET, Path: dir + "/" + node}}}, odd)
		const answers = 9
		for range answers {
			odd.hears(t)
		}
		u.release(dir, node)
		if m := next[*messages.NodeReleased](t, u.peer); m.GetMissing() {
			t.Errorf("%v", m)
		}
		ref.SendReleaseNode(&messages.ReleaseNode{Epoch: 1, Directory: dir, Node: node}, odd)
		odd.hears(t) // of the release, or a Wake
		u.goesOn()
		if text := log.String(); strings.Count(text, "a recipient panics") < answers || !strings.Contains(text, "reply_test.go") {
			t.Errorf("the log says: %s", text)
		}
		for _, name := range s.Nodes(t, dir) {
			must(t, s.Client(t).Delete(dir+"/"+name, -1))
		}
	})
}
