package remote_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/messages"
)

// fabric is a network between clients and lock servers in virtual time, whose directions can be cut
// and whose streams can be broken. A cut holds messages back, as TCP does.
type fabric struct {
	random *rand.Rand

	mu      sync.Mutex
	servers map[string]*remote.LockServer
	cuts    map[path]time.Time // until when
	streams map[*stream]path
	delay   time.Duration // longest of most messages
	lates   bool          // some are delayed for seconds
	bursts  atomic.Bool   // messages arrive with the one before them, now and then
	conns   map[path]int  // the connection that the next stream from a client to a server uses
	dead    map[path]int  // the last one of them that is half open: nothing comes through

	alter func(*messages.ServerFrame) // called for a copy of each frame of a server, unless it is nil
}

// path is a direction between two processes.
type path struct{ from, to string }

func newFabric(random *rand.Rand) *fabric {
	return &fabric{random: random, servers: map[string]*remote.LockServer{}, cuts: map[path]time.Time{}, streams: map[*stream]path{}, conns: map[path]int{}, dead: map[path]int{}, delay: 10 * time.Millisecond}
}

// stream is a stream between two processes.
type stream struct {
	fabric *fabric
	ctx    context.Context
	end    context.CancelFunc
	up     chan *messages.ClientFrame
	down   chan *messages.ServerFrame
	path   path
	conn   int
}

// halfOpen has nothing more come through the connection of a client to a server: neither end is told so.
func (f *fabric) halfOpen(client, server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := path{client, server}
	f.conns[p] = max(f.conns[p], 1)
	f.dead[p] = f.conns[p]
}

// abandon has the next stream of a client to a server use another connection.
func (f *fabric) abandon(client, server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := path{client, server}
	f.conns[p] = max(f.conns[p], 1) + 1
}

// isDead reports whether nothing comes through a connection.
func (f *fabric) isDead(p path, conn int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return conn <= f.dead[p]
}

// network returns what opens the streams of a client, which share a connection to each server.
func (f *fabric) network(client string) remote.Network {
	return remote.Network{Streams: f.dialer(client), Abandon: func(server string) { f.abandon(client, server) }}
}

// cut holds back all messages of a direction for a time.
func (f *fabric) cut(from, to string, d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := path{from, to}
	if until := time.Now().Add(d); until.After(f.cuts[p]) {
		f.cuts[p] = until
	}
}

// heal ends all cuts.
func (f *fabric) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.cuts)
	f.delay, f.lates = 10*time.Millisecond, false
}

// slow delays messages from now on: most for up to a time, and some for seconds if lates is true.
func (f *fabric) slow(delay time.Duration, lates bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.delay, f.lates = delay, lates
}

// breakStreams breaks the streams between two processes; "" is any.
func (f *fabric) breakStreams(client, server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s, p := range f.streams {
		if (client == "" || client == p.from) && (server == "" || server == p.to) {
			s.end()
		}
	}
}

// set has a server be reached by a name; nil has none be reached.
func (f *fabric) set(name string, s *remote.LockServer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.servers[name] = s
}

// travel blocks for the time that a message takes, and reports whether it arrives.
func (f *fabric) travel(ctx context.Context, from, to string) bool {
	f.mu.Lock()
	d := time.Duration(f.random.Int64N(int64(f.delay)))
	if f.bursts.Load() && f.random.IntN(4) > 0 {
		d = 0
	}
	if f.lates && f.random.IntN(30) == 0 {
		d += time.Duration(f.random.Int64N(int64(5 * time.Second)))
	}
	f.mu.Unlock()
	for {
		if d > 0 {
			select {
			case <-ctx.Done():
				return false
			case <-time.After(d):
			}
		}
		f.mu.Lock()
		d = time.Until(f.cuts[path{from, to}])
		f.mu.Unlock()
		if d <= 0 {
			return true
		}
		d = min(d, 100*time.Millisecond) // a cut may be healed
	}
}

// dialer returns what opens the streams of a client.
func (f *fabric) dialer(client string) remote.Streams {
	return func(ctx context.Context, server string) (remote.ClientTransport, error) {
		f.mu.Lock()
		p := path{client, server}
		f.conns[p] = max(f.conns[p], 1)
		conn := f.conns[p]
		f.mu.Unlock()
		if f.isDead(p, conn) {
			<-ctx.Done()
		}
		if !f.travel(ctx, client, server) || !f.travel(ctx, server, client) {
			return nil, context.Cause(ctx)
		}
		f.mu.Lock()
		s := f.servers[server]
		f.mu.Unlock()
		if s == nil {
			return nil, fmt.Errorf("%s is down", server)
		}
		st := &stream{fabric: f, path: p, conn: conn, up: make(chan *messages.ClientFrame, 1<<12), down: make(chan *messages.ServerFrame, 1<<12)}
		st.ctx, st.end = context.WithCancel(ctx)
		f.mu.Lock()
		f.streams[st] = path{client, server}
		f.mu.Unlock()
		toServer, toClient := make(chan *messages.ClientFrame), make(chan *messages.ServerFrame)
		served := make(chan struct{})
		go carry(st, client, server, st.up, toServer, nil)
		go carry(st, server, client, st.down, toClient, served)
		go func() {
			s.Connect(serverSide{st, toServer}, client)
			f.mu.Lock()
			delete(f.streams, st)
			f.mu.Unlock()
			close(served)
		}()
		return clientSide{st, toClient}, nil
	}
}

// carry carries the frames of one direction, until it has carried those that were there when last was
// closed.
func carry[F any](st *stream, from, to string, in <-chan F, out chan<- F, last <-chan struct{}) {
	defer close(out)
	for {
		var frame F
		select {
		case frame = <-in:
		case <-st.ctx.Done():
			return
		case <-last:
			select {
			case frame = <-in:
			default:
				return
			}
		}
		if !st.fabric.travel(st.ctx, from, to) {
			return
		}
		if st.fabric.isDead(st.path, st.conn) {
			<-st.ctx.Done()
			return
		}
		select {
		case out <- frame:
		case <-st.ctx.Done():
			return
		}
	}
}

type clientSide struct {
	*stream
	in <-chan *messages.ServerFrame
}

// Send implements remote.ClientTransport.
func (s clientSide) Send(f *messages.ClientFrame) error {
	select {
	case <-s.ctx.Done():
		return io.EOF
	default:
	}
	if _, err := proto.Marshal(f); err != nil { // as gRPC does
		s.end()
		return err
	}
	s.up <- f
	return nil
}

// Recv implements remote.ClientTransport.
func (s clientSide) Recv() (*messages.ServerFrame, error) {
	frame, open := <-s.in
	if !open {
		return nil, io.EOF
	}
	if s.fabric.alter != nil {
		frame = proto.CloneOf(frame)
		s.fabric.alter(frame)
	}
	return frame, nil
}

// CloseSend implements remote.ClientTransport.
func (s clientSide) CloseSend() error { return nil }

type serverSide struct {
	*stream
	in <-chan *messages.ClientFrame
}

// Send implements remote.ServerTransport.
func (s serverSide) Send(f *messages.ServerFrame) error {
	if s.ctx.Err() != nil {
		return io.EOF
	}
	if _, err := proto.Marshal(f); err != nil {
		return err
	}
	s.down <- f
	return nil
}

// Recv implements remote.ServerTransport.
func (s serverSide) Recv() (*messages.ClientFrame, error) {
	frame, open := <-s.in
	if !open {
		return nil, io.EOF
	}
	return frame, nil
}
