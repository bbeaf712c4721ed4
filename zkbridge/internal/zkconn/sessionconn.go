package zkconn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// SessionConn is one session of one epoch, and its connections one after the other. There is one
// zk.Conn per epoch, because go-zookeeper would go on with the next session by itself. Its methods
// may be called from any goroutine.
type SessionConn struct {
	Epoch     uint64
	cfg       *Settings
	post      func(any)   // posts an event; must not block
	noteError func(error) // notes why an attempt to connect has failed
	ctx       context.Context
	cancel    context.CancelFunc
	hosts     *hostList
	client    *zk.Conn
	events    <-chan zk.Event

	lookups  sync.WaitGroup // of names, under way
	hearing  hearing        // belongs to the goroutine that reads the connection
	tooLarge sync.Map       // paths of nodes and directories that are larger than MaxReply; see sendRead

	sessionID      atomic.Int64 // 0 before there is a session
	granted        atomic.Int64 // session timeout, a time.Duration
	disconnected   atomic.Bool  // the connection was lost, and there is none
	deadline       atomic.Int64 // as the time since the bridge was opened
	deadlinePassed atomic.Bool  // Overdue has returned true
	lastZxid       atomic.Int64 // newest in answers to requests
	eventsZxid     atomic.Int64 // the events of all watches up to this zxid have been posted
	sessionEnded   atomic.Bool  // a server has confirmed the end of the session, or has said that it is over

	active   atomic.Pointer[Conn]   // that requests go over; nil for none
	newest   atomic.Pointer[Conn]   // nil before the first
	password atomic.Pointer[[]byte] // of the session; nil before there is one
}

var (
	errOver     = errors.New("the epoch is over")
	errReplaced = errors.New("the server is not among the servers any more")
)

// clientBuffer is the size of go-zookeeper's buffers: it sends the handshake and the end.
const clientBuffer = 4 << 10

// Open starts connecting in the background, and returns. It calls post with each event, one of the
// types below, and note with the error of each attempt to connect, on any goroutine.
func Open(epoch uint64, cfg *Settings, post func(event any), note func(error)) (*SessionConn, error) {
	c := &SessionConn{Epoch: epoch, cfg: cfg, post: post, noteError: note}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.hosts = newHostList(cfg.Servers, c.isOver, c.Left, cfg.SessionTimeout)
	var err error
	c.client, c.events, err = zk.Connect(cfg.Servers.All(), cfg.SessionTimeout,
		zk.WithHostProvider(c.hosts),
		zk.WithDialer(c.dial),
		zk.WithEventCallback(c.onClientEvent),
		zk.WithLogger(zkLogger{cfg.Log, epoch}),
		zk.WithMaxBufferSize(clientBuffer),
		zk.WithMaxConnBufferSize(clientBuffer))
	if err != nil {
		c.cancel()
		return nil, err
	}
	return c, nil
}

// onClientEvent is go-zookeeper's callback, its only lossless stream of events. go-zookeeper may
// hold locks meanwhile: the callback must neither block nor call the zk.Conn.
func (c *SessionConn) onClientEvent(e zk.Event) {
	switch {
	case e.Type != zk.EventSession:
	case e.State == zk.StateHasSession:
		c.disconnected.Store(false)
		c.post(Established{c.newest.Load(), "connected to " + e.Server})
	case e.State == zk.StateDisconnected:
		c.disconnected.Store(true) // each failed attempt to reconnect is an event, too
		c.post(Disconnected{"disconnected from " + e.Server})
	case e.State == zk.StateExpired:
		c.Kill() // at once: go-zookeeper goes on to open another session
		c.post(Expired{e.Server + " says that the session has expired"})
	}
}

// onWatchEvent posts the event of a watch.
func (c *SessionConn) onWatchEvent(kind zk.EventType, path string) {
	path = c.cfg.Root.strip(path)
	switch kind {
	case zk.EventNodeCreated, zk.EventNodeDeleted, zk.EventNodeDataChanged:
		c.post(NodeChanged{path, kind == zk.EventNodeDeleted})
	case zk.EventNodeChildrenChanged:
		c.post(NodeChanged{zkpath.Children(path), false})
	}
}

// logTooLarge logs each path once in a session, because some readers try again and again.
func (c *SessionConn) logTooLarge(path string, err error) {
	if _, known := c.tooLarge.LoadOrStore(path, true); !known {
		c.cfg.Log.Error("ZooKeeper's answer is larger than Config.MaxReply and is not read", "path", path, "error", err,
			"do", "raise Config.MaxReply, or delete nodes of the directory that has too many")
	}
}

// send sends a request over the active connection. See Conn.send.
func (c *SessionConn) send(request []byte, then Callback[[]byte]) {
	if w := c.active.Load(); w != nil {
		w.send(request, then)
		return
	}
	then(nil, zk.ErrNoServer)
}

// dial connects to one server, until the epoch ends at the latest. It ignores go-zookeeper's own
// time-out, a fixed second.
func (c *SessionConn) dial(network, address string, _ time.Duration) (net.Conn, error) {
	c.pauseBeforeDial()
	if err := c.checkServer(address); err != nil {
		return nil, err
	}
	deadline := c.hosts.beginAttempt(c.cfg.ConnectTimeout)
	ctx, cancel := context.WithDeadline(c.ctx, deadline)
	defer cancel()
	w, err := c.connect(ctx, network, address, deadline)
	if err != nil {
		c.noteError(err)
		return nil, err
	}
	c.newest.Store(w) // before checkServer: either Kill or LeaveReplaced finds w, or checkServer fails
	if err := c.checkServer(address); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (c *SessionConn) connect(ctx context.Context, network, address string, deadline time.Time) (*Conn, error) {
	conn, raw, err := c.cfg.open(ctx, c.ctx, &c.lookups, network, address)
	if err != nil {
		return nil, err
	}
	c.noteError(&handshakeError{"handshake", raw.RemoteAddr().String(), errSilent}) // until it answers
	w := newConn(conn, raw, c, deadline)
	w.Server = address
	return w, nil
}

// pauseBeforeDial waits for the pause before a server is dialed, until the epoch ends at the
// latest.
func (c *SessionConn) pauseBeforeDial() {
	pause := time.NewTimer(c.hosts.pause())
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-c.ctx.Done():
	}
}

// onConnectResponse keeps the session id and the password of a handshake. The id 0 means that the
// requested session is over, which go-zookeeper reports.
func (c *SessionConn) onConnectResponse(id int64, password []byte) error {
	if id == 0 {
		c.sessionEnded.Store(true)
		return nil
	}
	if had := c.ID(); had == 0 || had == id {
		c.password.Store(&password) // before the id: a reader of the id may need it
		c.sessionID.Store(id)
		return nil
	}
	c.Kill()
	c.post(Expired{"the server has opened session " + messages.FormatSession(id) + " instead"})
	return errOver
}

// onAuthRefused ends the epoch: a server has refused the credentials, and the next one would, too.
func (c *SessionConn) onAuthRefused(err error) {
	c.Kill()
	c.post(AuthRefused{err})
}

// isOver reports whether no connection is opened any more.
func (c *SessionConn) isOver() bool { return c.ctx.Err() != nil }

// checkServer returns why no connection to a server may be opened, or nil.
func (c *SessionConn) checkServer(server string) error {
	switch {
	case c.isOver():
		return errOver
	case !slices.Contains(c.cfg.Servers.All(), server):
		return errReplaced
	}
	return nil
}

// LeaveReplaced closes a connection to a server that is not among the servers any more, also one
// that is not established yet. It does not block.
func (c *SessionConn) LeaveReplaced() {
	if w := c.newest.Load(); w != nil && c.checkServer(w.Server) == errReplaced {
		go w.Close()
	}
}

// Kill closes the connection and prevents others. No message of this epoch can reach a server any
// more. It does not block.
func (c *SessionConn) Kill() {
	c.cancel()
	if w := c.newest.Load(); w != nil {
		w.Close()
	}
}

// Close ends go-zookeeper's client, and the session, too, if a server confirms that within
// ConnectTimeout. It blocks until go-zookeeper's goroutines have ended.
func (c *SessionConn) Close() {
	limit := time.AfterFunc(c.cfg.ConnectTimeout, c.Kill) // go-zookeeper itself waits for a second
	defer limit.Stop()
	c.client.Close()
	for range c.events { // closed when go-zookeeper has ended: the server hangs up after its answer
	}
	c.Kill() // ends what else uses the connection's context
	c.lookups.Wait()
}

// ID returns ZooKeeper's number of the session, 0 before there is one.
func (c *SessionConn) ID() int64 { return c.sessionID.Load() }

// Timeout returns the session timeout that the server has granted.
func (c *SessionConn) Timeout() time.Duration { return time.Duration(c.granted.Load()) }

// IsOnline reports whether a server has confirmed the session and is still connected.
func (c *SessionConn) IsOnline() bool { return c.ID() != 0 && !c.disconnected.Load() }

// HasEnded reports whether a server has confirmed the end of the session, or has said that it is
// over.
func (c *SessionConn) HasEnded() bool { return c.sessionEnded.Load() }

// Context returns a context that ends with the epoch.
func (c *SessionConn) Context() context.Context { return c.ctx }

// Zxid returns the newest zxid in the answers to requests.
func (c *SessionConn) Zxid() int64 { return c.lastZxid.Load() }

// Active returns the connection that requests go over, nil for none.
func (c *SessionConn) Active() *Conn { return c.active.Load() }

// Use has requests go over a connection, nil for none, and returns the one before.
func (c *SessionConn) Use(conn *Conn) *Conn { return c.active.Swap(conn) }

// Resumption returns the id and the password that resume the session, which has begun.
func (c *SessionConn) Resumption() (id int64, password []byte) {
	return c.sessionID.Load(), *c.password.Load()
}

// zkLogger logs go-zookeeper's log at debug level. The bridge itself logs what matters.
type zkLogger struct {
	log   *slog.Logger
	epoch uint64
}

func (l zkLogger) Printf(format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...), "epoch", l.epoch)
}

// A SessionConn posts these events.
type (
	// Established says that a server has confirmed the session, new or old, over Conn.
	Established struct {
		Conn   *Conn
		Detail string
	}
	// Disconnected says that the connection is gone, or that an attempt to connect has failed.
	Disconnected struct{ Detail string }
	// Expired says that the session is over, as a server reports.
	Expired struct{ Detail string }
	// AuthRefused says that a server has refused the credentials. The SessionConn makes no other
	// attempt.
	AuthRefused struct{ Err error }
	// NodeChanged says that the watch of a node, or of a directory's children, has fired.
	NodeChanged struct {
		Path    string // zkpath.Children(directory) for a directory's children
		Deleted bool
	}
)
