package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
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
	var f messages.ClientFrame
	if proto.Unmarshal(frame, &f) == nil && len(f.Messages) > 0 {
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

// The limits of one input.
const (
	fuzzRoom  = 4 << 20 // bytes that the attacker sends
	fuzzSteps = 64
	fuzzTime  = time.Minute
)

// The steps of an attack. Seeds have them as bytes, so they keep their numbers.
const (
	stepForged byte = iota
	stepLiteral
	stepInSequence
	stepFlood
	stepOpen
	stepRenew
	stepCut
	stepHalfClose
	stepBye
	stepWait
	stepSwitch
	stepDeaf
	stepAgain
	steps
)

// attack runs the steps of an input.
type attack struct {
	*attacker
	tape    *tape
	server  *inmem
	conns   [3]*grpc.ClientConn
	streams [3]*rawStream
	at      int // of streams
	last    []byte
	spent   time.Duration
}

func (a *attack) step(t *testing.T) {
	switch what := byte(a.below(int(steps))); what {
	case stepForged:
		a.send(a.frame())
	case stepLiteral:
		a.send(a.tape.take(a.below(1 << 10)))
	case stepInSequence:
		a.send(a.inSequence(a.tape.take(a.below(1 << 10))))
	case stepFlood:
		n := a.below(1 << 20)
		a.send(a.inSequence(a.flood(n, a.tape.take(a.below(1<<10)))))
	case stepOpen:
		a.open(t, a.below(6))
	case stepRenew:
		a.mu.Lock()
		a.renew++
		renew := marshal(&messages.ClientFrame{Renew: &messages.Renew{Number: a.renew, Got: a.renewed}})
		a.mu.Unlock()
		a.send(a.inSequence(renew))
	case stepCut:
		if s := a.streams[a.at]; s != nil {
			s.end()
		}
	case stepHalfClose:
		a.send(nil)
	case stepBye:
		a.send(marshal(&messages.ClientFrame{Bye: true}))
	case stepWait:
		d := choose(a, time.Millisecond, 100*time.Millisecond, time.Second, 3*time.Second, 10*time.Second)
		if a.spent += d; a.spent < fuzzTime {
			<-time.After(d)
		}
	case stepSwitch:
		a.at = a.below(len(a.streams))
	case stepDeaf:
		if s := a.streams[a.at]; s != nil {
			s.listen(!s.deaf.Load())
		}
	case stepAgain:
		for range a.below(64) {
			a.send(a.last)
		}
	}
}

// flood makes a frame of one message, many times.
func (a *attack) flood(n int, message []byte) (frame []byte) {
	field := descriptorOf(&messages.ClientFrame{}).Fields().ByName("messages")
	one := appendField(nil, field, message)
	for range min(n, 2<<20/len(one)) {
		frame = append(frame, one...)
	}
	return frame
}

func (a *attack) send(frame []byte) {
	if a.room -= len(frame); a.room < 0 {
		return
	}
	if a.last = frame; a.streams[a.at] != nil {
		a.streams[a.at].send(frame)
	}
}

// open opens a stream, in place of the one that there is.
func (a *attack) open(t *testing.T, hello int) {
	if s := a.streams[a.at]; s != nil {
		s.end()
	}
	if a.conns[a.at] == nil {
		c, err := dialRaw(a.server, net.IPv4(10, 0, 0, byte(100+a.at)))
		if err != nil {
			t.Fatal(err)
		}
		a.conns[a.at] = c
	}
	ctx, end := context.WithCancel(context.Background())
	s := &rawStream{end: end, up: make(chan []byte, 1<<8), wake: make(chan struct{}, 1), done: make(chan struct{})}
	a.streams[a.at] = s
	if hello < 5 {
		a.send(a.hello(hello))
	}
	conn := a.conns[a.at]
	go func() {
		stream, err := conn.NewStream(ctx, &streamDesc, streamMethod)
		if err != nil {
			end()
			close(s.done)
			return
		}
		s.run(ctx, func(b []byte) error { return stream.SendMsg(b) }, func() { stream.CloseSend() },
			func() (b []byte, err error) { err = stream.RecvMsg(&b); return b, err },
			func(b []byte) {
				var f messages.ServerFrame
				if err := proto.Unmarshal(b, &f); err != nil {
					t.Errorf("the server sends what nobody can read: %v", err)
				}
				a.take(&f)
			})
	}()
	<-time.After(time.Millisecond) // for the Welcome
}

func (a *attack) close() {
	for i, c := range a.conns {
		if s := a.streams[i]; s != nil {
			s.end()
			<-s.done
		}
		if c != nil {
			c.Close()
		}
	}
}

// probe has the honest client lock and unlock, and fails the test if that takes long.
func probe(t *testing.T, locks *actors.Locks, within time.Duration, when string) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g, err := locks.Mutex("/honest/own").Lock(ctx)
	if err == nil {
		err = g.Unlock(ctx)
	}
	if took := time.Since(began); err != nil || took > within {
		t.Errorf("%s an honest client's lock and unlock take %v, at most %v are allowed: %v", when, took, within, err)
	}
}

// Whatever the frames of a client are, an honest client beside it keeps its locks, is served without
// delay, and nothing of the other is left when it has gone.
func FuzzServerFrames(f *testing.F) {
	for _, seed := range attackSeeds() {
		f.Add(seed.input)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		boundHeap(t, fuzzHeap, func() {
			zktest.Bubble(t, func(t *testing.T) { attackServer(t, input) })
		})
	})
}

var (
	honestAddress = net.IPv4(10, 0, 0, 10)
	errElsewhere  = errors.New("below /locks only")
)

// fuzzedServer is a lock server at an address in a bubble.
type fuzzedServer struct {
	zk     *zktest.Server
	own    *actors.Locks
	server *remote.LockServer
	grpc   *remote.GRPCServer
	at     *inmem
}

// serveInmem starts a lock server, whose ZooKeeper takes some time for each byte.
func serveInmem(t *testing.T, log *slog.Logger) *fuzzedServer {
	s := &fuzzedServer{zk: zktest.Virtual(t), at: newInmem()}
	slow := &wire{dial: s.zk.Dial, perByte: 100 * time.Nanosecond}
	var err error
	s.own, err = actors.Connect(t.Context(), s.zk.Addr(), actors.Config{SessionTimeout: sessionTimeout, Margin: sessionMargin, Dial: slow.Dial, OmitHolder: true, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	allow := func(p remote.Peer, path string, _ remote.Verb) error {
		if strings.HasPrefix(p.Address, honestAddress.String()+":") || path == "/locks" || strings.HasPrefix(path, "/locks/") {
			return nil
		}
		return errElsewhere
	}
	s.server, err = remote.NewServer(s.own, remote.ServerConfig{Lease: leaseTime, Insecure: true, Logger: log, Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	if s.grpc, err = s.server.GRPC(nil); err != nil {
		t.Fatal(err)
	}
	go s.grpc.Serve(s.at)
	return s
}

func (s *fuzzedServer) close(t *testing.T) {
	for _, err := range []error{s.server.Close(), s.own.Close()} {
		if err != nil {
			t.Error(err)
		}
	}
	s.grpc.Stop()
}

func attackServer(t *testing.T, input []byte) {
	log := slog.New(failureLog{t})
	s := serveInmem(t, log)
	defer s.close(t)
	honest := dialInmem(t, s.at, honestAddress, log)
	held, err := honest.Mutex("/honest/held").Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	probe(t, honest, time.Second, "before")

	tape := &tape{input}
	a := &attack{attacker: newAttacker(tape, fuzzRoom, attackedPaths), tape: tape, server: s.at}
	for n := 0; n < fuzzSteps && len(tape.left) > 0 && !t.Failed(); n++ {
		a.step(t)
		probe(t, honest, fuzzLatency, fmt.Sprintf("after step %d", n))
	}
	a.close()
	for end := time.Now().Add(fuzzTime); s.server.Clients() > 1 && time.Now().Before(end) && !t.Failed(); {
		<-time.After(100 * time.Millisecond)
		probe(t, honest, fuzzLatency, "behind the attack")
	}
	if n := s.server.Clients(); n != 1 {
		t.Errorf("%d clients are left, not the honest one alone", n)
	}
	if why := held.Err(); why != nil {
		t.Errorf("the honest client has lost its lock: %v", why)
	}
	if stats := honest.Stats(); stats.SessionsLost > 0 || stats.Suspensions > 0 {
		t.Errorf("the honest client's session was interrupted: %+v", stats)
	}
	for _, path := range attackedPaths {
		mustBeFree(t, honest, path)
	}
	if err := held.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	if err := honest.Close(); err != nil {
		t.Error(err)
	}
}

// mustBeFree fails the test unless a client gets the lock at a path. A lock of another recipe is there until
// it is idle.
func mustBeFree(t *testing.T, locks *actors.Locks, path string) {
	ctx, cancel := context.WithTimeout(t.Context(), fuzzTime)
	defer cancel()
	for {
		g, err := locks.Mutex(path).Lock(ctx)
		switch {
		case err == nil:
			g.Release()
			return
		case !errors.Is(err, actors.ErrInvalid):
			t.Errorf("%s is not free behind the attack: %v", path, err)
			return
		}
		<-time.After(time.Second)
	}
}

// What an attack may cost.
const (
	fuzzHeap    = 128 << 20
	fuzzLatency = 100 * time.Millisecond
)

// attackSeed is an input with a name.
type attackSeed struct {
	name  string
	input []byte
}

// script makes an input of steps.
type script []byte

func (s script) step(what byte, choices ...byte) script {
	return append(append(slices.Clip(s), what), choices...)
}

// short has the length of what follows in the two bytes that a tape has for it.
func short(n int) []byte { return []byte{byte(n >> 8), byte(n)} }

// send sends a message.
func (s script) send(m *messages.ClientMessage) script {
	frame := marshal(&messages.ClientFrame{Messages: []*messages.ClientMessage{m}})
	return append(s.step(stepInSequence, short(len(frame))...), frame...)
}

// flood sends a message n times in one frame.
func (s script) flood(n int, m *messages.ClientMessage) script {
	b := marshal(m)
	s = s.step(stepFlood, byte(n>>16), byte(n>>8), byte(n))
	return append(append(s, short(len(b))...), b...)
}

func marshal(m proto.Message) []byte {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

// The cases that were found without a fuzzer. Those that a fuzzer has found are in testdata/fuzz.
func attackSeeds() []attackSeed {
	acquire := func(id uint64, path string, spec *messages.LockSpec, a *messages.Acquire) *messages.ClientMessage {
		a.RequestId = id
		return &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{Path: path, Lock: spec, Acquire: a}}}
	}
	mutex := func(id uint64, path string) *messages.ClientMessage {
		return acquire(id, path, &messages.LockSpec{}, &messages.Acquire{})
	}
	question := func(id uint64, kind, path string) *messages.ClientMessage {
		return &messages.ClientMessage{What: &messages.ClientMessage_Question{Question: &messages.Question{Id: id, Kind: kind, Path: path, Lock: &messages.LockSpec{}}}}
	}
	release := func(id uint64) *messages.ClientMessage {
		return &messages.ClientMessage{What: &messages.ClientMessage_Release{Release: &messages.Release{RequestId: id}}}
	}
	begin := script(nil).step(stepOpen, 0).step(stepRenew)
	seeds := []attackSeed{
		{"a lock", begin.send(mutex(1, "/locks/0")).step(stepRenew).step(stepWait, 1).send(release(1)).step(stepBye)},
		{"a lock with a stream that is cut", begin.send(mutex(1, "/locks/0")).step(stepWait, 1).step(stepCut).step(stepOpen, 1).step(stepRenew).send(release(1))},
		{"a first frame by a resumed stream", begin.step(stepCut).step(stepOpen, 1).send(mutex(1, "/locks/0")).step(stepCut).step(stepOpen, 1).step(stepWait, 2)},
		{"questions", begin.send(question(1, "find", "/locks")).send(question(2, "observe", "/locks/0")).send(question(3, "inspect", "/")).step(stepWait, 2)},
		{"the same frame again and again", begin.send(mutex(1, "/locks/0")).step(stepAgain, 20).step(stepWait, 1)},
		{"another client's directory", begin.send(question(1, "revoke", "/honest/held/locks/x")).send(question(2, "inspect", "/honest/held")).
			send(mutex(3, "/honest/held")).send(mutex(4, "/honest/held/leases")).send(question(5, "revoke-holders", "/locks/../honest/held"))},
		{"520,000 empty requests", begin.flood(520_000, &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{}}}).step(stepWait, 1)},
		{"thousands of withdrawals", begin.flood(9_000, &messages.ClientMessage{What: &messages.ClientMessage_Withdraw{Withdraw: 1}})},
		{"a client that does not read", begin.step(stepDeaf).flood(9_000, question(1, "none", "")).step(stepAgain, 3).step(stepWait, 4)},
	}
	many, texts := begin, begin
	for id := range uint64(60) {
		many = many.send(acquire(id+1, "/locks/2", &messages.LockSpec{Recipe: messages.Recipe_SEMAPHORE, Permits: 8_000}, &messages.Acquire{Permits: 8_000}))
	}
	for _, m := range []*messages.ClientMessage{
		acquire(1, "/locks/0", &messages.LockSpec{}, &messages.Acquire{Owner: "!"}), mutex(2, "/locks/!"), question(3, "find", "/locks/!"),
		acquire(4, "/locks/0", &messages.LockSpec{Recipe: messages.Recipe_SEMAPHORE, CountPath: "/locks/!"}, &messages.Acquire{})} {
		b := bytes.ReplaceAll(script(nil).send(m), []byte("!"), []byte("\xff"))
		texts = append(texts.step(stepOpen, 1), b...)
	}
	return append(seeds, attackSeed{"sixty requests of 8,000 permits", many}, attackSeed{"texts that are not UTF-8", texts})
}
