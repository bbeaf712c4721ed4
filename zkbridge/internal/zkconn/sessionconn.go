package zkconn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// SessionConn is one session of one epoch, and its connections one after the other. Its methods may
// be called from any goroutine.
type SessionConn struct {
	Epoch     uint64
	cfg       *Settings
	post      func(any)       // posts an event; must not block
	noteError func(error)     // notes why an attempt to connect has failed
	ctx       context.Context // of the epoch
	cancel    context.CancelFunc
	dialing   context.Context // ends with ctx, or once no other connection is to be opened
	endDials  context.CancelFunc
	hosts     *hostList
	ended     chan struct{} // closed when run has returned

	lookups  sync.WaitGroup // of names, under way
	hearing  hearing        // belongs to the goroutine that reads the connection
	tooLarge sync.Map       // paths of nodes and directories that are larger than MaxReply; see sendRead

	sessionID      atomic.Int64 // 0 before there is a session
	granted        atomic.Int64 // session timeout, a time.Duration
	online         atomic.Bool  // a server has confirmed the session, and is still connected
	deadline       atomic.Int64 // as the time since the bridge was opened
	deadlinePassed atomic.Bool  // Overdue has returned true
	lastZxid       atomic.Int64 // newest in answers to requests
	eventsZxid     atomic.Int64 // the events of all watches up to this zxid have been posted
	sessionEnded   atomic.Bool  // a server has confirmed the end of the session, or has said that it is over

	active   atomic.Pointer[Conn]   // that requests go over; nil for none
	newest   atomic.Pointer[Conn]   // nil before the first
	serving  atomic.Pointer[Conn]   // from the end of its handshake on; nil for none
	password atomic.Pointer[[]byte] // of the session; nil before there is one
}

var (
	errOver     = errors.New("the epoch is over")
	errReplaced = errors.New("the server is not among the servers any more")
)

// Open starts connecting in the background, and returns. It calls post with each event, one of the
// types below, and note with the error of each attempt to connect, on any goroutine.
func Open(epoch uint64, cfg *Settings, post func(event any), note func(error)) *SessionConn {
	c := newSessionConn(epoch, cfg, post, note)
	go c.run()
	return c
}

// newSessionConn returns a SessionConn that does not connect.
func newSessionConn(epoch uint64, cfg *Settings, post func(event any), note func(error)) *SessionConn {
	c := &SessionConn{Epoch: epoch, cfg: cfg, post: post, noteError: note, ended: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.dialing, c.endDials = context.WithCancel(c.ctx)
	c.hosts = newHostList(cfg.Servers, c.Left, cfg.SessionTimeout)
	return c
}

// run connects the session to one server after the other, until the epoch is over.
func (c *SessionConn) run() {
	defer close(c.ended)
	for !c.isOver() {
		w, err := c.connect(c.hosts.next())
		if err != nil {
			c.online.Store(false)
			c.noteFailure(err)
			if errors.Is(err, zk.ErrAuthFailed) && c.ID() == 0 && !c.isOver() { // a certificate: no lock is at stake
				c.onAuthRefused(err)
			}
			continue
		}
		c.hosts.onConnected()
		c.post(Established{w, "connected to " + w.Server})
		if c.serving.Store(w); c.isOver() { // Close either finds w, or has ended dialing before
			w.endSession()
		}
		err = w.serve()
		c.serving.Store(nil)
		c.online.Store(false)
		c.post(Disconnected{"disconnected from " + w.Server})
		c.cfg.Log.Debug("a connection has ended", "server", w.Server, "epoch", c.Epoch, "error", err)
	}
}

// noteFailure notes why an attempt to connect has failed.
func (c *SessionConn) noteFailure(err error) {
	if !errors.Is(err, errOver) && !errors.Is(err, errReplaced) {
		c.noteError(err)
		c.cfg.Log.Debug("an attempt to connect has failed", "epoch", c.Epoch, "error", err)
	}
}

// connect connects to a server, after the pause that is due, and opens or resumes the session.
func (c *SessionConn) connect(server string) (*Conn, error) {
	c.pauseBeforeDial()
	if err := c.checkServer(server); err != nil {
		return nil, err
	}
	deadline := c.hosts.beginAttempt(c.cfg.ConnectTimeout)
	ctx, cancel := context.WithDeadline(c.dialing, deadline)
	defer cancel()
	if err := c.probeSuspects(ctx, server); err != nil && c.ID() == 0 {
		return nil, err // the session would be lost to the same request
	}
	conn, raw, err := c.cfg.open(ctx, c.ctx, &c.lookups, "tcp", server)
	if err != nil {
		return nil, err
	}
	address := raw.RemoteAddr().String()
	c.noteError(&handshakeError{"handshake", address, errSilent}) // until it answers
	w := newConn(conn, raw, c, deadline)
	w.Server = server
	c.newest.Store(w) // before checkServer: either Kill or LeaveReplaced finds w, or checkServer fails
	if err = c.checkServer(server); err == nil {
		err = w.handshake()
	}
	if err != nil {
		w.Close()
		return nil, &handshakeError{"handshake", address, err}
	}
	return w, nil
}

// probeSuspects finds out which requests a server hangs up on, before the session goes on. It has
// until the deadline of ctx for that, or half of the time once there is a session, which must be
// resumed. With an error the next attempt goes on.
func (c *SessionConn) probeSuspects(ctx context.Context, server string) error {
	kinds := c.cfg.found.takeSuspects()
	if kinds == 0 {
		return nil
	}
	if c.ID() != 0 {
		deadline, _ := ctx.Deadline()
		half, cancel := context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
		ctx = half
	}
	left, err := c.cfg.probe(ctx, server, kinds)
	if err != nil {
		c.cfg.found.suspect(left)
		c.cfg.Log.Debug("it is not found out which request a server hangs up on", "server", server, "epoch", c.Epoch, "error", err)
	}
	return err
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

// pauseBeforeDial waits for the pause before a server is dialed, until the epoch ends at the
// latest.
func (c *SessionConn) pauseBeforeDial() {
	pause := time.NewTimer(c.hosts.pause())
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-c.dialing.Done():
	}
}

// expire ends the epoch: the session is over, for a reason.
func (c *SessionConn) expire(why string) error {
	c.Kill()
	c.post(Expired{why})
	return errOver
}

// onAuthRefused ends the epoch: a server has refused the credentials, and the next one would, too.
func (c *SessionConn) onAuthRefused(err error) {
	c.Kill()
	c.post(AuthRefused{err})
}

// isOver reports whether no connection is opened any more.
func (c *SessionConn) isOver() bool { return c.dialing.Err() != nil }

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

// Close ends the session, if a server is connected that confirms that within ConnectTimeout, and the
// connection. It blocks until all goroutines have ended.
func (c *SessionConn) Close() {
	limit := time.AfterFunc(c.cfg.ConnectTimeout, c.Kill)
	defer limit.Stop()
	c.endDials()
	if w := c.serving.Load(); w != nil {
		w.endSession() // the server hangs up behind its answer
	}
	<-c.ended
	c.Kill() // ends what else uses the connection's context
	c.lookups.Wait()
}

// ID returns ZooKeeper's number of the session, 0 before there is one.
func (c *SessionConn) ID() int64 { return c.sessionID.Load() }

// Timeout returns the session timeout that the server has granted.
func (c *SessionConn) Timeout() time.Duration { return time.Duration(c.granted.Load()) }

// IsOnline reports whether a server has confirmed the session and is still connected.
func (c *SessionConn) IsOnline() bool { return c.online.Load() }

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

// noPassword is the password of no session, as other clients send it.
var noPassword = make([]byte, 16)

// Resumption returns the id and the password that resume the session. The id is 0 if the session has
// not begun.
func (c *SessionConn) Resumption() (id int64, password []byte) {
	if id = c.sessionID.Load(); id == 0 {
		return 0, noPassword
	}
	return id, *c.password.Load()
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
