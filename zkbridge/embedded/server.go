package embedded

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"
)

// Server is an in-memory ZooKeeper. All its methods may be called from any
// goroutine, also after Close: then they do nothing and return zero values.
type Server struct {
	cfg      ServerConfig
	release  release
	listener net.Listener // nil with MemoryOnly
	calls    chan func()
	incoming chan *batch
	done     chan struct{}
	stop     sync.Once
	wg       sync.WaitGroup

	// Everything below belongs to the loop's goroutine.
	tree         *tree
	started      time.Time
	conns        map[*conn]struct{}
	admitted     uint64  // connections so far
	dirty        []*conn // have output that their writers do not know of
	sessions     map[int64]*session
	lastSession  int64
	secret       [16]byte
	lagging      map[*replica]struct{}
	replicas     map[string]*replica // by address; see FreezeAddress
	lagAll       bool
	dataWatches  *watchTable
	childWatches *watchTable
	firing       uint64
	faults       []*Injected
	paused       bool
	halted       bool               // see Halt
	phantoms     map[string][]*node // by address; see Haunt
	parked       []*batch
	timer        *time.Timer
	ahead        time.Duration // see now
	wake         time.Time     // when timer fires; zero if it is not running
	nextReap     time.Time
	body         encoder // scratch for the reply being built
	received     int64
	sent         int64
}

// Start starts a server. It is ready when Start returns. It returns the error of
// listening, or of a Version that is not known.
func Start(cfg ServerConfig) (*Server, error) {
	release, err := parseRelease(cmp.Or(cfg.Version, defaultVersion))
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	cfg = cfg.withDefaults(release)
	if cfg.Listener == nil && !cfg.MemoryOnly {
		l, err := net.Listen("tcp", cfg.Addr)
		if err != nil {
			return nil, fmt.Errorf("embedded: %w", err)
		}
		cfg.Listener = l
	}
	s := newServer(cfg, release)
	s.wg.Go(s.loop)
	if s.listener != nil {
		s.wg.Go(s.accept)
	}
	return s, nil
}

// newServer makes a server whose loop does not run yet.
func newServer(cfg ServerConfig, release release) *Server {
	now, addUp := time.Now(), release.has(watchModesAddUp)
	s := &Server{
		cfg:          cfg,
		release:      release,
		listener:     cfg.Listener,
		calls:        make(chan func()),
		incoming:     make(chan *batch, 64),
		done:         make(chan struct{}),
		tree:         newTree(),
		started:      now,
		conns:        map[*conn]struct{}{},
		sessions:     map[int64]*session{},
		lastSession:  (now.UnixMilli() << 24 >> 8) & (1<<56 - 1), // as ZooKeeper with server id 0
		lagging:      map[*replica]struct{}{},
		replicas:     map[string]*replica{},
		dataWatches:  newWatchTable(addUp),
		childWatches: newWatchTable(addUp),
		timer:        time.NewTimer(time.Hour),
		phantoms:     map[string][]*node{},
	}
	s.timer.Stop()
	rand.Read(s.secret[:])
	return s
}

// Close cuts all connections and stops the server. It waits until all of its
// goroutines are gone, and may be called more than once. The data is lost.
func (s *Server) Close() error {
	s.stop.Do(func() {
		close(s.done)
		if s.listener != nil {
			s.listener.Close()
		}
	})
	s.wg.Wait()
	return nil
}

// Addr returns the host:port that clients connect to, or "" with MemoryOnly.
func (s *Server) Addr() string {
	if s.listener == nil {
		return ""
	}
	return s.listener.Addr().String()
}

// Version returns the version of the server that this one behaves as: see [ServerConfig].
func (s *Server) Version() string { return s.cfg.Version }

// Dial opens a connection in memory: the returned end of a net.Pipe talks to
// the server as a TCP connection would. Network and address may be any. It does
// not block. It has the type of the fields Dial of actors.Config and of
// zkbridge.Config, and of net.Dialer's DialContext:
//
//	locks, err := actors.Connect(ctx, "embedded", actors.Config{Dial: server.Dial})
//
// It returns the error of ctx, or syscall.ECONNREFUSED after Close and if a [Fault] refuses the
// connection.
func (s *Server) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	accepted := false
	s.call(func() { accepted = s.admit(server, address) })
	if !accepted {
		client.Close()
		server.Close()
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	}
	return client, nil
}

func (s *Server) accept() {
	for pause := time.Millisecond; ; {
		nc, err := s.listener.Accept()
		if err != nil {
			select {
			case <-s.done:
				return
			case <-time.After(pause): // out of file descriptors, perhaps
				pause = min(2*pause, time.Second)
				continue
			}
		}
		pause = time.Millisecond
		accepted := false
		s.call(func() { accepted = s.admit(nc, localAddress(nc)) })
		if !accepted {
			nc.Close()
		}
	}
}

// call runs f in the loop and waits for it. It does nothing once the server is closed.
func (s *Server) call(f func()) {
	ran := make(chan struct{})
	select {
	case s.calls <- func() { f(); close(ran) }:
		<-ran
	case <-s.done:
	}
}

func localAddress(nc net.Conn) string {
	if address := nc.LocalAddr(); address != nil {
		return address.String()
	}
	return ""
}

// admit takes a new connection in, unless a fault refuses it. The address is what [Server.Dial]
// was given, or of the listener's side.
func (s *Server) admit(nc net.Conn, address string) bool {
	if s.halted {
		return false
	}
	c := newConn(s, nc)
	c.address = address
	s.admitted++
	c.number = s.admitted
	switch f := s.match(c, OpDial, nil); {
	case f == nil:
	case f.Action == BlackHole:
		c.hole = true
	default:
		return false
	}
	s.conns[c] = struct{}{}
	s.wg.Go(c.read)
	s.wg.Go(c.write)
	return true
}

// TB is the part of testing.TB that [Run] needs. It keeps package testing out
// of programs that link this package.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// Run starts a server that is closed when the test ends. Without a Config it
// takes the zero value.
func Run(t TB, cfg ...ServerConfig) *Server {
	t.Helper()
	var c ServerConfig
	if len(cfg) > 0 {
		c = cfg[0]
	}
	s, err := Start(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
