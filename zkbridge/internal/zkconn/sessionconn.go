package zkconn

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

// SessionConn is the client of one epoch and its connections, one after the other. There
// is one zk.Conn per epoch, because go-zookeeper would go on with the next session
// by itself. Its methods may be called from any goroutine.
type SessionConn struct {
	Epoch     uint64
	cfg       *Config
	post      func(any)   // to the bridge; must not block
	noteError func(error) // remembers why there is no session
	ctx       context.Context
	cancel    context.CancelFunc
	openedAt  time.Time
	hosts     *hostList
	client    *zk.Conn
	events    <-chan zk.Event

	lookups sync.WaitGroup // under way

	sessionID      atomic.Int64 // of the session, 0 before there is one
	granted        atomic.Int64 // as granted, a time.Duration
	lastAnswered   atomic.Int64 // send time of the newest answered message, from start
	lastHandshake  atomic.Int64 // send time of the newest handshake that was answered, from start
	lastZxid       atomic.Int64 // newest in answers to requests
	eventsZxid     atomic.Int64 // zxid up to which the events of all watches have been reported, at least
	disconnectedAt atomic.Int64 // when the connection was lost, from start; 0 while there is one
	online         atomic.Bool  // a server has confirmed the session and is still connected
	sessionEnded   atomic.Bool  // the server has confirmed the end of the session, or said that it is over
	deadlinePassed atomic.Bool  // somebody has been told that the deadline has passed

	active atomic.Pointer[Conn] // which the bridge knows to be connected, nil for none

	mu       sync.Mutex
	dead     bool
	newest   *Conn  // newest
	password []byte // of the session
}

var errOver = errors.New("the epoch is over")

// clientBuffer is for what go-zookeeper reads and writes: the handshake, pings and the end.
const clientBuffer = 4 << 10

// Open starts connecting in the background.
func Open(epoch uint64, cfg *Config, post func(any), note func(error)) (*SessionConn, error) {
	l := &SessionConn{Epoch: epoch, cfg: cfg, post: post, noteError: note, openedAt: time.Now()}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.hosts = newHostList(l.isDead, cfg.SessionTimeout)
	var err error
	l.client, l.events, err = zk.Connect(cfg.Servers, cfg.SessionTimeout,
		zk.WithHostProvider(l.hosts),
		zk.WithDialer(l.dial),
		zk.WithEventCallback(l.onClientEvent),
		zk.WithLogger(zkLogger{cfg.Log, epoch}),
		zk.WithMaxBufferSize(clientBuffer),
		zk.WithMaxConnBufferSize(clientBuffer))
	if err != nil {
		l.cancel()
		return nil, err
	}
	return l, nil
}

// onClientEvent is go-zookeeper's callback, its only lossless stream of events. It may
// hold go-zookeeper's locks: it must not block and not call the zk.Conn.
func (c *SessionConn) onClientEvent(e zk.Event) {
	switch {
	case e.Type != zk.EventSession:
	case e.State == zk.StateHasSession:
		c.online.Store(true)
		c.disconnectedAt.Store(0)
		c.post(Established{c, c.newestConn(), "connected to " + e.Server})
	case e.State == zk.StateDisconnected:
		c.online.Store(false)
		c.disconnectedAt.CompareAndSwap(0, int64(c.now())) // each failed attempt to reconnect comes here, too
		c.post(Disconnected{c, "disconnected from " + e.Server})
	case e.State == zk.StateExpired:
		c.Kill() // at once: go-zookeeper goes on to open another session
		c.post(Expired{c, e.Server + " says that the session has expired"})
	}
}

// onWatchEvent posts the event of a watch.
func (c *SessionConn) onWatchEvent(kind zk.EventType, path string) {
	path = c.cfg.Root.strip(path)
	switch kind {
	case zk.EventNodeCreated, zk.EventNodeDeleted, zk.EventNodeDataChanged:
		c.post(NodeChanged{c, path, kind == zk.EventNodeDeleted})
	case zk.EventNodeChildrenChanged:
		c.post(NodeChanged{c, ChildrenPath(path), false})
	}
}

// send sends a request over the connection that the bridge knows of. See wire.send.
func (c *SessionConn) send(request []byte, then Callback[[]byte]) {
	if w := c.active.Load(); w != nil {
		w.send(request, then)
		return
	}
	then(nil, zk.ErrNoServer)
}

// dial connects to one server. Its context ends with the epoch; go-zookeeper's own
// time-out, a fixed second, is not used.
func (c *SessionConn) dial(network, address string, _ time.Duration) (net.Conn, error) {
	if c.isDead() {
		return nil, errOver
	}
	if !c.pauseBeforeDial() {
		return nil, errOver
	}
	deadline := c.hosts.beginAttempt(c.cfg.ConnectTimeout)
	ctx, cancel := context.WithDeadline(c.ctx, deadline)
	defer cancel()
	w, err := c.connect(ctx, network, address, deadline)
	if err != nil {
		c.noteError(err)
		return nil, err
	}
	if !c.setNewest(w) {
		w.Close()
		return nil, errOver
	}
	return w, nil
}

func (c *SessionConn) connect(ctx context.Context, network, address string, deadline time.Time) (*Conn, error) {
	conn, raw, err := c.cfg.open(ctx, c.ctx, &c.lookups, network, address)
	if err != nil {
		return nil, err
	}
	c.noteError(&handshakeError{raw.RemoteAddr().String(), errNoZooKeeper}) // until it does
	w := newConn(conn, raw, c, deadline)
	w.Server = address
	return w, nil
}

// pauseBeforeDial makes the pause before a server is dialed. It tells if the epoch goes on.
func (c *SessionConn) pauseBeforeDial() bool {
	pause := time.NewTimer(c.hosts.pause())
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-c.ctx.Done():
		return false
	}
}

func (c *SessionConn) setNewest(w *Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dead {
		c.newest = w
	}
	return !c.dead
}

// onConnectResponse takes the session id and the password of a handshake. The id 0 means that the
// session asked for is over, which go-zookeeper reports.
func (c *SessionConn) onConnectResponse(id int64, password []byte) error {
	if id == 0 {
		c.sessionEnded.Store(true)
		return nil
	}
	if c.sessionID.CompareAndSwap(0, id) || c.sessionID.Load() == id {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.password = password
		return nil
	}
	c.Kill()
	c.post(Expired{c, fmt.Sprintf("the server has opened session %#x instead", id)})
	return errOver
}

// onAuthRefused ends the epoch: its server does not take the credentials, and the next
// would not, either.
func (c *SessionConn) onAuthRefused(err error) {
	c.Kill()
	c.post(AuthRefused{c, err})
}

// now is the time since the link was opened, by the monotonic clock.
func (c *SessionConn) now() time.Duration { return time.Since(c.openedAt) }

// onAnswered notes that a message sent at a time has been answered.
func (c *SessionConn) onAnswered(at time.Duration) {
	for {
		old := c.lastAnswered.Load()
		if int64(at) <= old || c.lastAnswered.CompareAndSwap(old, int64(at)) {
			return
		}
	}
}

// Deadline is when the session must be taken for lost: the leader counts its timeout
// from the newest message that it has heard of. That is the newest one that was answered,
// at the least, if the server that answered was in touch with the leader. A server that
// has hung up may not have been; then it is an earlier one, sent up to a ping's interval
// before. In a handshake the server asks the leader. See the package documentation.
func (c *SessionConn) Deadline() time.Time { return c.openedAt.Add(c.deadlineOffset()) }

// deadlineOffset is the deadline as now gives the time.
func (c *SessionConn) deadlineOffset() time.Duration {
	timeout := time.Duration(c.granted.Load())
	margin := min(c.cfg.Margin, timeout/2) // a later session may have been granted less
	heard := time.Duration(c.lastAnswered.Load())
	if away := time.Duration(c.disconnectedAt.Load()); away != 0 {
		heard = max(min(heard, away-timeout/PingsPerTimeout), time.Duration(c.lastHandshake.Load()))
	}
	return heard + timeout - margin
}

// Overdue tells whether the deadline has passed. Once it has told anybody so, that is
// final: an answer that comes in later, having waited in a buffer while the process was
// paused, does not bring back what was taken for lost.
func (c *SessionConn) Overdue() bool {
	if c.deadlinePassed.Load() {
		return true
	}
	if c.now() < c.deadlineOffset() {
		return false
	}
	c.deadlinePassed.Store(true)
	return true
}

// PingsPerTimeout is how often go-zookeeper pings within a session timeout.
const PingsPerTimeout = 3

func (c *SessionConn) newestConn() *Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newest
}

func (c *SessionConn) isDead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// Kill cuts the connection and prevents others. Nothing of this epoch can reach a
// server any more. It does not block.
func (c *SessionConn) Kill() {
	c.mu.Lock()
	c.dead = true
	w := c.newest
	c.mu.Unlock()
	c.cancel()
	if w != nil {
		w.Close()
	}
}

// Close ends the client, and the session too if a server confirms that within the
// connect timeout. It returns when go-zookeeper's goroutines are gone.
func (c *SessionConn) Close() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.client.Close() // waits up to 3 s for the server
	}()
	timer := time.NewTimer(c.cfg.ConnectTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	c.Kill()
	for range c.events { // closed when go-zookeeper has ended
	}
	<-done
	c.lookups.Wait()
}

// UnansweredSince returns when the oldest request was sent that has had no answer for least or
// longer, and an error that says so; or nil.
func (c *SessionConn) UnansweredSince(least time.Duration) (since time.Time, why error) {
	w := c.active.Load()
	if w == nil {
		return time.Time{}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.sent) == 0 || c.now()-w.sent[0].at < least {
		return time.Time{}, nil
	}
	return c.openedAt.Add(w.sent[0].at), fmt.Errorf("%v does not answer", w.RemoteAddr())
}

// ID returns ZooKeeper's number of the session, 0 before there is one.
func (c *SessionConn) ID() int64 { return c.sessionID.Load() }

// Timeout returns the session timeout that the server has granted.
func (c *SessionConn) Timeout() time.Duration { return time.Duration(c.granted.Load()) }

// IsOnline reports whether a server has confirmed the session and is still connected.
func (c *SessionConn) IsOnline() bool { return c.online.Load() }

// HasEnded reports whether a server has confirmed the end of the session, or has said that it is over.
func (c *SessionConn) HasEnded() bool { return c.sessionEnded.Load() }

// Context returns a context that ends with the epoch.
func (c *SessionConn) Context() context.Context { return c.ctx }

// Zxid returns the newest zxid in the answers to requests.
func (c *SessionConn) Zxid() int64 { return c.lastZxid.Load() }

// Active returns the connection that requests go over, nil for none.
func (c *SessionConn) Active() *Conn { return c.active.Load() }

// Use has requests go over a connection, nil for none, and returns the one before.
func (c *SessionConn) Use(conn *Conn) *Conn { return c.active.Swap(conn) }

// credentials returns what it takes to resume the session.
func (c *SessionConn) Resumption() (id int64, password []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sessionID.Load(), c.password
}
