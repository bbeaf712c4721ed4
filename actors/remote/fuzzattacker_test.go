package remote_test

import (
	"slices"
	"sync"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// attacker is what a client that keeps to no protocol knows, and the forger of its frames.
type attacker struct {
	forger
	paths []string // of the locks that it wants

	mu             sync.Mutex // of what follows
	incarnation    uint64
	leases         []uint64
	received, sent uint64 // numbers of messages by the newest lease
	renewed, renew uint64
	nodes          []string // that were granted
}

// attackedPaths are the paths at which the attacker may have locks.
var attackedPaths = []string{"/locks/0", "/locks/1", "/locks/2", "/locks/count"}

func newAttacker(c choices, room int, paths []string) *attacker {
	a := &attacker{paths: paths}
	a.forger = forger{choices: c, room: room}
	const p = "actorlock."
	id := func() any { return uint64(1 + a.below(8)) }
	path := func() any { return choose(c, paths...) }
	sometimes := func(n int, value func() any) func() any {
		return func() any {
			if a.oneIn(n) {
				return value()
			}
			return nil
		}
	}
	yes := func() any { return true }
	a.usual = map[protoreflect.FullName]func() any{
		p + "ClientFrame.hello": func() any { return nil },
		p + "ClientFrame.renew": sometimes(4, func() any {
			a.renew++
			return a.message(descriptorOf(&messages.Renew{}), 1)
		}),
		p + "ClientFrame.bye":      sometimes(200, yes),
		p + "ClientFrame.received": func() any { return a.received },
		p + "ClientFrame.first":    func() any { return a.sent + 1 },
		p + "ClientFrame.messages": func() any {
			var all [][]byte
			for range a.below(5) {
				all = append(all, a.message(descriptorOf(&messages.ClientMessage{}), 1))
			}
			return all
		},
		p + "Hello.version":              func() any { return uint64(1) },
		p + "Hello.lease":                sometimes(2, func() any { return a.lease(a.below(3)) }),
		p + "Hello.let_go":               sometimes(4, func() any { return a.lease(a.below(3)) }),
		p + "Hello.incarnation":          func() any { return a.incarnation },
		p + "Hello.client":               func() any { return "client" },
		p + "ClientMessage.withdraw":     id,
		p + "ClientMessage.hold_expired": id,
		p + "AcquireLock.path":           path,
		p + "LockSpec.recipe":            func() any { return uint64(choose(c, 0, 0, 1, 2, 2, 3, 4)) },
		p + "LockSpec.permits":           func() any { return uint64(a.below(4)) },
		p + "LockSpec.local_queue":       sometimes(8, func() any { return a.message(descriptorOf(&messages.LocalQueue{}), 3) }),
		p + "Member.path":                path,
		p + "Acquire.request_id":         id,
		p + "Acquire.owner":              func() any { return choose(c, "", "a", "b") },
		p + "Acquire.try":                sometimes(2, yes),
		p + "Acquire.permits":            sometimes(4, func() any { return uint64(a.below(4)) }),
		p + "Acquire.notify_contended":   sometimes(2, yes),
		p + "Acquire.revocable":          sometimes(2, yes),
		p + "Cancel.request_id":          id,
		p + "Release.request_id":         id,
		p + "Question.id":                id,
		p + "Question.kind":              func() any { return choose(c, inspection.Kinds()...) },
		p + "Question.path":              func() any { return a.target() },
		p + "Question.arguments":         func() any { return choose(c, "", "{}", "1", "null") },
		p + "Renew.number":               func() any { return a.renew },
		p + "Renew.got":                  func() any { return a.renewed },
	}
	return a
}

// lease returns the lease that was granted before so many others, or 0.
func (a *attacker) lease(before int) uint64 {
	if len(a.leases) == 0 {
		return 0
	}
	return a.leases[max(0, len(a.leases)-1-before)]
}

// known returns the leases that were granted, and by which incarnation of the server.
func (a *attacker) known() (leases []uint64, incarnation uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.leases), a.incarnation
}

// target returns a path or a node for a question.
func (a *attacker) target() string {
	if len(a.nodes) > 0 && a.oneIn(2) {
		return a.nodes[a.below(len(a.nodes))]
	}
	return choose[string](a, append([]string{"/locks", "/honest/own", "/honest", "/"}, a.paths...)...)
}

// take takes a frame of the server.
func (a *attacker) take(f *messages.ServerFrame) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if w := f.GetWelcome(); w != nil {
		a.incarnation = w.Incarnation
		if !w.Resumed {
			a.leases = append(a.leases, w.Lease)
			a.received, a.sent, a.renew, a.renewed = 0, 0, 0, 0
		}
		a.sent = f.Received
	}
	if n := uint64(len(f.Messages)); n > 0 {
		a.received = max(a.received, f.First+n-1)
	}
	a.renewed = max(a.renewed, f.GetRenewed().GetNumber())
	for _, m := range f.Messages {
		if g := m.GetGranted(); g != nil && len(a.nodes) < 64 {
			a.nodes = append(a.nodes, g.Path+"/"+g.Node)
		}
	}
}

// frame makes a frame. It also counts the messages that the frame has.
func (a *attacker) frame() []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	frame := a.message(descriptorOf(&messages.ClientFrame{}), 0)
	a.count(frame)
	return frame
}

func (a *attacker) count(frame []byte) {
	var f messages.ClientFrame // which may take a hundred times the bytes of a frame that the server refuses
	if remote.TakesIn(frame, &f) && proto.Unmarshal(frame, &f) == nil && len(f.Messages) > 0 {
		a.sent = max(a.sent, f.First+uint64(len(f.Messages))-1)
	}
}

// inSequence appends to a frame the numbers that an honest client would have: the last one counts.
func (a *attacker) inSequence(frame []byte) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := descriptorOf(&messages.ClientFrame{}).Fields()
	frame = appendField(frame, d.ByName("received"), a.received)
	frame = appendField(frame, d.ByName("first"), a.sent+1)
	a.count(frame)
	return frame
}

// hello makes the first frame of a stream.
func (a *attacker) hello(kind int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := &messages.Hello{Version: 1, Client: "client", Incarnation: a.incarnation}
	switch kind {
	case 1:
		h.Lease = a.lease(0)
	case 2:
		h.LetGo = a.lease(0)
	case 3:
		return appendField(nil, descriptorOf(&messages.ClientFrame{}).Fields().ByName("hello"), a.message(descriptorOf(h), 1))
	case 4:
		return a.message(descriptorOf(&messages.ClientFrame{}), 0)
	}
	return marshal(&messages.ClientFrame{Hello: h})
}
