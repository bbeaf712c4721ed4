package zkbridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// link is the client of one epoch and its connections, one after the other. There
// is one zk.Conn per epoch, because go-zookeeper would go on with the next session
// by itself. Its methods may be called from any goroutine.
type link struct {
	epoch  uint64
	cfg    *settings
	post   func(any)   // to the bridge; must not block
	note   func(error) // remembers why there is no session
	ctx    context.Context
	cancel context.CancelFunc
	start  time.Time
	hosts  *hosts
	conn   *zk.Conn
	events <-chan zk.Event

	lookups sync.WaitGroup // under way

	id      atomic.Int64 // of the session, 0 before there is one
	timeout atomic.Int64 // as granted, a time.Duration
	newest  atomic.Int64 // send time of the newest answered message, from start
	shaken  atomic.Int64 // send time of the newest handshake that was answered, from start
	zxid    atomic.Int64 // newest in answers to requests
	since   atomic.Int64 // zxid up to which the events of all watches have been reported, at least
	away    atomic.Int64 // when the connection was lost, from start; 0 while there is one
	online  atomic.Bool  // a server has confirmed the session and is still connected
	ended   atomic.Bool  // the server has confirmed the end of the session, or said that it is over
	late    atomic.Bool  // somebody has been told that the deadline has passed

	current atomic.Pointer[wire] // which the bridge knows to be connected, nil for none

	mu       sync.Mutex
	dead     bool
	wire     *wire  // newest
	password []byte // of the session
}

// These tell the bridge what go-zookeeper or a wire has reported.
type (
	sessionEvent struct {
		link   *link
		event  event
		detail string
		wire   *wire // which is connected, nil for none
	}
	nodeEvent struct {
		link    *link
		path    string
		deleted bool
	}
	authRefused struct {
		link *link
		err  error
	}
)

var errOver = errors.New("the epoch is over")

// smallBuffer is for what go-zookeeper reads and writes: the handshake, pings and the end.
const smallBuffer = 4 << 10

// openLink starts connecting in the background.
func openLink(epoch uint64, cfg *settings, post func(any), note func(error)) (*link, error) {
	l := &link{epoch: epoch, cfg: cfg, post: post, note: note, start: time.Now()}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.hosts = newHosts(l.isDead, cfg.session)
	var err error
	l.conn, l.events, err = zk.Connect(cfg.servers, cfg.session,
		zk.WithHostProvider(l.hosts),
		zk.WithDialer(l.dial),
		zk.WithEventCallback(l.event),
		zk.WithLogger(zkLogger{cfg.log, epoch}),
		zk.WithMaxBufferSize(smallBuffer),
		zk.WithMaxConnBufferSize(smallBuffer))
	if err != nil {
		l.cancel()
		return nil, fmt.Errorf("zkbridge: %w", err)
	}
	return l, nil
}

// event is go-zookeeper's callback, its only lossless stream of events. It may
// hold go-zookeeper's locks: it must not block and not call the zk.Conn.
func (l *link) event(e zk.Event) {
	switch {
	case e.Type != zk.EventSession:
	case e.State == zk.StateHasSession:
		l.online.Store(true)
		l.away.Store(0)
		l.post(sessionEvent{l, established, "connected to " + e.Server, l.newestWire()})
	case e.State == zk.StateDisconnected:
		l.online.Store(false)
		l.away.CompareAndSwap(0, int64(l.now())) // each failed attempt to reconnect comes here, too
		l.post(sessionEvent{l, disconnected, "disconnected from " + e.Server, nil})
	case e.State == zk.StateExpired:
		l.kill() // at once: go-zookeeper goes on to open another session
		l.post(sessionEvent{l, expired, e.Server + " says that the session has expired", nil})
	}
}

// happened posts the event of a watch.
func (l *link) happened(kind zk.EventType, path string) {
	path = l.cfg.root.without(path)
	switch kind {
	case zk.EventNodeCreated, zk.EventNodeDeleted, zk.EventNodeDataChanged:
		l.post(nodeEvent{l, path, kind == zk.EventNodeDeleted})
	case zk.EventNodeChildrenChanged:
		l.post(nodeEvent{l, inside(path), false})
	}
}

// send sends a request over the connection that the bridge knows of. See wire.send.
func (l *link) send(request []byte, then taker[[]byte]) {
	if w := l.current.Load(); w != nil {
		w.send(request, then)
		return
	}
	then(nil, zk.ErrNoServer)
}

// dial connects to one server. Its context ends with the epoch; go-zookeeper's own
// time-out, a fixed second, is not used.
func (l *link) dial(network, address string, _ time.Duration) (net.Conn, error) {
	if l.isDead() {
		return nil, errOver
	}
	if !l.rest() {
		return nil, errOver
	}
	deadline := l.hosts.begin(l.cfg.connect)
	ctx, cancel := context.WithDeadline(l.ctx, deadline)
	defer cancel()
	w, err := l.connect(ctx, network, address, deadline)
	if err != nil {
		l.note(err)
		return nil, err
	}
	if !l.adopt(w) {
		w.Close()
		return nil, errOver
	}
	return w, nil
}

func (l *link) connect(ctx context.Context, network, address string, deadline time.Time) (*wire, error) {
	conn, raw, err := l.cfg.open(ctx, l.ctx, &l.lookups, network, address)
	if err != nil {
		return nil, err
	}
	l.note(&handshakeError{raw.RemoteAddr().String(), errNoZooKeeper}) // until it does
	w := newWire(conn, raw, l, deadline)
	w.server = address
	return w, nil
}

// open opens a connection, by Config.Dial if there is one, and secures it; raw is the
// connection below TLS. A lookup may go on until life ends, on a goroutine that lookups counts.
func (s *settings) open(ctx, life context.Context, lookups *sync.WaitGroup, network, address string) (conn, raw net.Conn, err error) {
	if s.dial != nil {
		raw, err = s.dial(ctx, network, address)
	} else {
		raw, err = s.names.dial(ctx, life, lookups, network, address)
	}
	if err != nil {
		return nil, nil, err
	}
	if conn, err = s.secure(ctx, raw, address); err != nil {
		raw.Close()
		return nil, nil, err
	}
	return conn, raw, nil
}

// rest makes the pause before a server is dialed. It tells if the epoch goes on.
func (l *link) rest() bool {
	pause := time.NewTimer(l.hosts.pause())
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-l.ctx.Done():
		return false
	}
}

func (l *link) adopt(w *wire) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dead {
		l.wire = w
	}
	return !l.dead
}

// greeted takes the session id and the password of a handshake. The id 0 means that the
// session asked for is over, which go-zookeeper reports.
func (l *link) greeted(id int64, password []byte) error {
	if id == 0 {
		l.ended.Store(true)
		return nil
	}
	if l.id.CompareAndSwap(0, id) || l.id.Load() == id {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.password = password
		return nil
	}
	l.kill()
	l.post(sessionEvent{l, expired, fmt.Sprintf("the server has opened session %#x instead", id), nil})
	return errOver
}

// refused ends the epoch: its server does not take the credentials, and the next
// would not, either.
func (l *link) refused(err error) {
	l.kill()
	l.post(authRefused{l, err})
}

// now is the time since the link was opened, by the monotonic clock.
func (l *link) now() time.Duration { return time.Since(l.start) }

// heard notes that a message sent at a time has been answered.
func (l *link) heard(at time.Duration) {
	for {
		old := l.newest.Load()
		if int64(at) <= old || l.newest.CompareAndSwap(old, int64(at)) {
			return
		}
	}
}

// deadline is when the session must be taken for lost: the leader counts its timeout
// from the newest message that it has heard of. That is the newest one that was answered,
// at the least, if the server that answered was in touch with the leader. A server that
// has hung up may not have been; then it is an earlier one, sent up to a ping's interval
// before. In a handshake the server asks the leader. See the package documentation.
func (l *link) deadline() time.Time { return l.start.Add(l.limit()) }

// limit is the deadline as now gives the time.
func (l *link) limit() time.Duration {
	timeout := time.Duration(l.timeout.Load())
	margin := min(l.cfg.margin, timeout/2) // a later session may have been granted less
	heard := time.Duration(l.newest.Load())
	if away := time.Duration(l.away.Load()); away != 0 {
		heard = max(min(heard, away-timeout/pingsPerTimeout), time.Duration(l.shaken.Load()))
	}
	return heard + timeout - margin
}

// overdue tells whether the deadline has passed. Once it has told anybody so, that is
// final: an answer that comes in later, having waited in a buffer while the process was
// paused, does not bring back what was taken for lost.
func (l *link) overdue() bool {
	if l.late.Load() {
		return true
	}
	if l.now() < l.limit() {
		return false
	}
	l.late.Store(true)
	return true
}

// pingsPerTimeout is how often go-zookeeper pings within a session timeout.
const pingsPerTimeout = 3

func (l *link) newestWire() *wire {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wire
}

func (l *link) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// kill cuts the connection and prevents others. Nothing of this epoch can reach a
// server any more. It does not block.
func (l *link) kill() {
	l.mu.Lock()
	l.dead = true
	w := l.wire
	l.mu.Unlock()
	l.cancel()
	if w != nil {
		w.Close()
	}
}

// close ends the client, and the session too if a server confirms that within the
// connect timeout. It returns when go-zookeeper's goroutines are gone.
func (l *link) close() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.conn.Close() // waits up to 3 s for the server
	}()
	timer := time.NewTimer(l.cfg.connect)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	l.kill()
	for range l.events { // closed when go-zookeeper has ended
	}
	<-done
	l.lookups.Wait()
}
