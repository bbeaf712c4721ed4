package remote_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

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
	sampled := fuzzSample(f)
	f.Fuzz(func(t *testing.T, input []byte) {
		sampled(t)
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
	// Three attackers may have 24,000 leases in one directory, whose list is one answer of 1.4 MB: 70 ms.
	slow := &wire{dial: s.zk.Dial, perByte: 50 * time.Nanosecond}
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
