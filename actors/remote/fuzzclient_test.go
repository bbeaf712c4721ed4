package remote_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The steps of an impostor. Seeds have them as bytes, so they keep their numbers.
const (
	foulForged byte = iota
	foulLiteral
	foulInSequence
	foulFlood
	foulWelcome
	foulRenewed
	foulCut
	foulEnd
	foulGoAway
	foulWait
	foulGrant
	foulRelease
	foulEnded
	foulAgain
	foulAnswer
	fouls
)

// foulPlay runs the steps of an input.
type foulPlay struct {
	*impostor
	tape   *tape
	t      *testing.T
	honest struct{ welcome, renew, grant bool } // it does so without a step
	stream atomic.Pointer[rawStream]
	spent  time.Duration

	sending sync.Mutex // for left and last: the steps send, and so do the answers to the client
	left    int        // bytes that may be sent in all
	last    []byte
}

// serve serves a stream of the client.
func (p *foulPlay) serve(stream grpc.ServerStream) error {
	ctx, end := context.WithCancel(stream.Context())
	s := &rawStream{end: end, up: make(chan []byte, 1<<8), wake: make(chan struct{}, 1), done: make(chan struct{})}
	p.stream.Store(s)
	var ended sync.Once
	well := make(chan struct{})
	go s.run(ctx, func(b []byte) error { return stream.SendMsg(b) }, func() { ended.Do(func() { close(well) }) },
		func() (b []byte, err error) { err = stream.RecvMsg(&b); return b, err }, p.on)
	select {
	case <-ctx.Done():
		return errors.New("cut")
	case <-well:
		end()
		return nil
	}
}

func (p *foulPlay) on(b []byte) {
	var f messages.ClientFrame
	if err := proto.Unmarshal(b, &f); err != nil {
		p.t.Errorf("the client sends what nobody can read: %v", err)
	}
	p.take(&f)
	if f.Hello != nil && p.honest.welcome {
		p.welcome(0)
	}
	if f.Renew != nil && p.honest.renew {
		p.renewed()
	}
	if len(f.Messages) > 0 && p.honest.grant {
		p.grant(0)
		p.release()
	}
}

func (p *foulPlay) send(frame []byte) {
	p.sending.Lock()
	p.left -= len(frame)
	fits := p.left >= 0
	if fits {
		p.last = frame
	}
	p.sending.Unlock()
	if s := p.stream.Load(); fits && s != nil {
		s.send(frame)
	}
}

func (p *foulPlay) sendMessages(all ...*messages.ServerMessage) {
	p.mu.Lock()
	frame := p.inSequence(marshal(&messages.ServerFrame{Messages: all}))
	p.mu.Unlock()
	p.send(frame)
}

func (p *foulPlay) welcome(kind int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := &messages.Welcome{Lease: p.lease, Resumed: p.hello.GetLease() == p.lease, Incarnation: 7, State: &messages.State{Connected: true}}
	switch kind {
	case 1:
		w.Resumed = true
	case 2:
		w.Resumed = false
	case 3:
		w.State = nil
	}
	if !w.Resumed {
		p.lease++
		w.Lease = p.lease
		p.received, p.sent = 0, 0
		p.requests, p.releases, p.questions = nil, nil, nil
	}
	p.send(marshal(&messages.ServerFrame{Welcome: w, Received: p.received}))
}

func (p *foulPlay) renewed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.send(marshal(&messages.ServerFrame{Renewed: &messages.Renewed{Number: p.renew, ForNanos: int64(leaseTime)}, Received: p.received}))
}

// grant grants a request as an honest server does.
func (p *foulPlay) grant(before int) {
	p.mu.Lock()
	r := last(p.requests, before)
	p.czxid++
	granted := func(path string) *messages.Granted {
		return &messages.Granted{RequestId: r.GetAcquire().GetRequestId(), Path: path, Node: "_c_00000000-0000-0000-0000-000000000000-lock-0000000000",
			Czxid: p.czxid, SessionId: 1, Epoch: 1}
	}
	g := granted(r.GetPath())
	if r.GetLock().GetRecipe() == messages.Recipe_SEMAPHORE {
		for range r.Acquire.Permits {
			g.Parts = append(g.Parts, granted(g.Path))
		}
	}
	for _, m := range r.GetLock().GetMembers() {
		g.Parts = append(g.Parts, granted(m.Path))
		g.Path = g.Parts[0].Path
	}
	p.mu.Unlock()
	if r != nil {
		p.sendMessages(&messages.ServerMessage{What: &messages.ServerMessage_Granted{Granted: g}})
	}
}

func (p *foulPlay) release() {
	p.mu.Lock()
	all := p.releases
	p.releases = nil
	p.mu.Unlock()
	for _, id := range all {
		p.sendMessages(&messages.ServerMessage{What: &messages.ServerMessage_Released{Released: &messages.Released{RequestId: id}}})
	}
}

func (p *foulPlay) step() {
	switch what := byte(p.below(int(fouls))); what {
	case foulForged:
		p.mu.Lock()
		frame := p.message(descriptorOf(&messages.ServerFrame{}), 0)
		p.count(frame)
		p.mu.Unlock()
		p.send(frame)
	case foulLiteral:
		p.send(p.tape.take(p.below(1 << 10)))
	case foulInSequence:
		p.mu.Lock()
		frame := p.inSequence(p.tape.take(p.below(1 << 10)))
		p.mu.Unlock()
		p.send(frame)
	case foulFlood:
		n := p.below(1 << 20)
		one := appendField(nil, descriptorOf(&messages.ServerFrame{}).Fields().ByName("messages"), p.tape.take(p.below(1<<10)))
		p.mu.Lock()
		frame := p.inSequence(bytes.Repeat(one, min(n, 2<<20/len(one))))
		p.mu.Unlock()
		p.send(frame)
	case foulWelcome:
		p.welcome(p.below(4))
	case foulRenewed:
		p.renewed()
	case foulCut:
		if s := p.stream.Load(); s != nil {
			s.end()
		}
	case foulEnd:
		p.send(nil)
	case foulGoAway:
		p.send(marshal(&messages.ServerFrame{GoAway: true}))
	case foulWait:
		d := choose(p, time.Millisecond, 100*time.Millisecond, time.Second, 3*time.Second, 10*time.Second)
		if p.spent += d; p.spent < fuzzTime {
			<-time.After(d)
		}
	case foulGrant:
		p.grant(p.below(4))
	case foulRelease:
		p.release()
	case foulEnded:
		p.send(marshal(&messages.ServerFrame{Ended: &messages.Ended{Reason: messages.Reason(p.below(24)), Detail: "so"}}))
	case foulAgain:
		for range p.below(64) {
			p.sending.Lock()
			again := p.last
			p.sending.Unlock()
			p.send(again)
		}
	case foulAnswer:
		p.mu.Lock()
		id := last(p.questions, p.below(2))
		p.mu.Unlock()
		p.sendMessages(&messages.ServerMessage{What: &messages.ServerMessage_Answer{Answer: &messages.Answer{Id: id, Value: p.tape.take(p.below(1 << 8))}}})
	}
	<-time.After(time.Millisecond)
}

// foulHeap bounds what an input takes: a frame of 2 MiB full of empty grants, which the client refuses, would
// take 110 MB.
const foulHeap = 64 << 20

// Whatever the frames of a lock server are, its client believes in no grant that no frame has granted,
// or longer than its lease, and it is served as soon as an honest server is there.
func FuzzClientFrames(f *testing.F) {
	for _, seed := range foulSeeds() {
		f.Add([]byte(seed))
	}
	sampled := fuzzSample(f)
	f.Fuzz(func(t *testing.T, input []byte) {
		sampled(t)
		boundHeap(t, foulHeap, func() {
			zktest.Bubble(t, func(t *testing.T) { playFoul(t, input) })
		})
	})
}

func playFoul(t *testing.T, input []byte) {
	log := slog.New(failureLog{t})
	tape := &tape{input}
	p := &foulPlay{impostor: newImpostor(tape, fuzzRoom), tape: tape, t: t, left: fuzzRoom}
	bits := tape.below(256)
	p.honest.welcome, p.honest.renew, p.honest.grant = bits&1 == 0, bits&2 == 0, bits&4 == 0
	foul := newInmem()
	bad := grpc.NewServer(grpc.ForceServerCodecV2(rawBytes{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error { return p.serve(stream) }))
	go bad.Serve(foul)
	good := serveInmem(t, log)
	defer good.close(t)
	var reach atomic.Pointer[inmem]
	reach.Store(foul)

	u := &usersOfFoul{t: t}
	dialed := make(chan struct{})
	go func() { // Dial blocks until there is a lease
		defer close(dialed)
		u.locks = dialThrough(t, &reach, log)
	}()
	u.work.Go(func() {
		<-dialed
		u.run()
	})
	for n := 0; n < fuzzSteps && len(tape.left) > 0 && !t.Failed(); n++ {
		p.step()
	}
	reach.Store(good.at)
	bad.Stop()
	<-dialed
	u.serves(time.Minute)
	u.over.Store(true)
	u.work.Wait()
	for _, g := range u.grants {
		if g.Err() == nil {
			t.Errorf("%v is believed in without a lease", g)
		}
	}
	if err := u.locks.Close(); err != nil {
		t.Error(err)
	}
}

// dialThrough returns the locks of a client whose server's name stands for one server and then another.
func dialThrough(t *testing.T, reach *atomic.Pointer[inmem], log *slog.Logger) *actors.Locks {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	locks, err := dialLocks(ctx, log, func(ctx context.Context) (net.Conn, error) { return reach.Load().dial(ctx, honestAddress) })
	if err != nil {
		t.Fatal(err)
	}
	return locks
}

// usersOfFoul are the users of a client whose server plays foul at first.
type usersOfFoul struct {
	t     *testing.T
	locks *actors.Locks
	work  sync.WaitGroup
	over  atomic.Bool

	mu     sync.Mutex
	grants []*actors.Grant
}

// run has all recipes used until over.
func (u *usersOfFoul) run() {
	l := u.locks
	u.user("/a", l.Mutex("/a"))
	u.user("/c", l.RWMutex("/c").Read(), actors.WithOwner("reader"))
	u.user("", l.MultiLock(l.Mutex("/a"), l.Mutex("/b")))
	u.user("/d", l.Semaphore("/d", 3), actors.Permits(2))
	u.work.Go(func() {
		for !u.over.Load() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			l.Mutex("/a").Participants(ctx)
			for range l.Observe(ctx, "/a") {
			}
			cancel()
			<-time.After(100 * time.Millisecond)
		}
	})
}

// user uses one lock. The nodes of its grants are below a path, if that is given.
func (u *usersOfFoul) user(path string, lock interface {
	Lock(context.Context, ...actors.Option) (*actors.Grant, error)
}, options ...actors.Option) {
	u.work.Go(func() {
		for !u.over.Load() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			g, err := lock.Lock(ctx, options...)
			if err == nil {
				u.check(g, path)
				<-time.After(100 * time.Millisecond)
				g.Unlock(ctx)
			}
			cancel()
			<-time.After(100 * time.Millisecond)
		}
	})
}

// check fails the test if a grant is none of the lock at the path.
func (u *usersOfFoul) check(g *actors.Grant, path string) {
	u.mu.Lock()
	u.grants = append(u.grants, g)
	u.mu.Unlock()
	for _, node := range g.Nodes() {
		if name := node[strings.LastIndex(node, "/")+1:]; !strings.HasPrefix(node, path+"/") || name == "" {
			u.t.Errorf("a client believes in a grant of %q by the node %q", path, node)
		}
	}
}

// serves fails the test unless the client gets a lock within a time.
func (u *usersOfFoul) serves(within time.Duration) {
	ctx, cancel := context.WithTimeout(u.t.Context(), within)
	defer cancel()
	for {
		g, err := u.locks.Mutex("/served").Lock(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			<-time.After(100 * time.Millisecond)
		case err != nil:
			u.t.Errorf("the client is not served by an honest server: %v", err)
			return
		case g.Session() == 1:
			g.Release()
		default:
			g.Release()
			return
		}
	}
}
