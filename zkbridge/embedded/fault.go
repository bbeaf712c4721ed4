package embedded

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Action is what a [Fault] does.
type Action int

// The actions. A cut connection is closed after what was queued before; its
// session lives on until it expires.
const (
	// CutBefore closes the connection; the request is not executed.
	CutBefore Action = iota + 1
	// DropReply executes the request, then closes the connection without a
	// reply: the client cannot know whether it was executed.
	DropReply
	// LeaveOutReply executes the request and does not reply; later requests are answered.
	LeaveOutReply
	// CutAfter executes the request, replies, then closes the connection.
	CutAfter
	// Refuse replies Fault.Code; the request is not executed.
	Refuse
	// Misreport executes the request and replies Fault.Code.
	Misreport
	// DelayRequest executes the request Fault.Delay later, even if the client
	// is gone by then, but before any write of its session on another
	// connection. Later requests of the connection wait behind it.
	DelayRequest
	// DelayReply executes the request at once and sends the reply, and all
	// that follows it on the connection, Fault.Delay later.
	DelayReply
	// BlackHole keeps the connection open but neither executes nor answers
	// the request or any later one.
	BlackHole
	// BlackHoleAfter is BlackHole, but the request itself is executed.
	BlackHoleAfter
	// ExpireSession expires the session; the request is not executed.
	ExpireSession
	// StaleReads freezes the session before the request, as [Server.Freeze]
	// does, and executes it. [Server.Thaw] ends that.
	StaleReads
)

var actionNames = map[Action]string{
	CutBefore: "cut before", DropReply: "drop reply", LeaveOutReply: "leave out reply", CutAfter: "cut after",
	Refuse: "refuse", Misreport: "misreport", DelayRequest: "delay request",
	DelayReply: "delay reply", BlackHole: "black hole", BlackHoleAfter: "black hole after",
	ExpireSession: "expire session", StaleReads: "stale reads",
}

// String names the action.
func (a Action) String() string { return actionNames[a] }

// Fault says what shall go wrong, and when: at the Nth request that matches
// Op, Path and Session, and Times times from then on.
//
// [Refuse] and [Misreport] are for requests that have a reply with a code: neither for pings nor for
// handshakes.
//
// With OpDial the only actions are [BlackHole], which accepts and never
// answers, and [CutBefore], which refuses. The session of such a connection is
// not known yet, so that a Fault of OpDial with a Session never fires.
//
// A handshake (OpConnect) is one of the session that it names, also where that
// has expired: so a client can be kept from coming back. This one cuts a session
// off until Remove, over all its connections and from its next request on, be it
// a ping; the session expires when its time has run out:
//
//	server.Inject(embedded.Fault{Op: embedded.OpAll, Session: id, Times: -1, Action: embedded.BlackHole})
//
// The handshake of a session that is new names none: only a Fault without Session
// meets it. So a client that is cut off comes back with its next session.
type Fault struct {
	Op      Op     // OpAny: every request in a session but a ping; OpAll: these, too, and handshakes
	Path    string // prefix of the path, or of one of the paths; "" for any
	Session int64  // 0 for any
	Nth     int    // 1 is the next one, and so is 0
	Times   int    // 0 means once, negative means always
	Action  Action
	Delay   time.Duration // for DelayRequest and DelayReply
	Code    int32         // the error code in the reply, for Refuse and Misreport; not 0
}

// Firing is one time that a fault fired.
type Firing struct {
	Op      Op
	Path    string
	Session int64
	Time    time.Time
}

// Injected is a fault in a server.
type Injected struct {
	Fault
	server *Server
	seen   int // matching requests so far
	left   int // firings left; negative without limit

	mu      sync.Mutex
	firings []Firing
	fired   chan struct{}
}

// Inject arms a fault. It does not block. Of several that match a request the
// first injected one fires; all of them count it.
func (s *Server) Inject(f Fault) *Injected {
	i := &Injected{Fault: f, server: s, left: cmp.Or(f.Times, 1), fired: make(chan struct{})}
	i.Nth = max(i.Nth, 1)
	s.call(func() { s.faults = append(s.faults, i) })
	return i
}

// Fired is closed when the fault fires for the first time.
func (i *Injected) Fired() <-chan struct{} { return i.fired }

// Firings returns when the fault has fired so far. It works after Close.
func (i *Injected) Firings() []Firing {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.firings)
}

// Remove disarms the fault. What it has done already stays.
func (i *Injected) Remove() { i.server.call(i.remove) }

func (i *Injected) remove() {
	i.server.faults = slices.DeleteFunc(slices.Clone(i.server.faults), func(other *Injected) bool { return other == i })
}

func (i *Injected) matches(c *conn, op Op, paths []string) bool {
	if !i.Op.covers(op) || i.Session != 0 && i.Session != c.named {
		return false
	}
	return i.Path == "" || slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, i.Path) })
}

// covers reports whether a fault of op f is one of requests of op.
func (f Op) covers(op Op) bool {
	switch f {
	case OpAny:
		return op != OpPing && op != OpDial && op != OpConnect
	case OpAll:
		return op != OpDial
	}
	return f == op
}

// match counts the request and returns the fault that fires for it, or nil.
func (s *Server) match(c *conn, op Op, paths []string) *Injected {
	var firing *Injected
	for _, i := range s.faults {
		if !i.matches(c, op, paths) {
			continue
		}
		if i.seen++; i.seen >= i.Nth && firing == nil {
			firing = i
		}
	}
	if firing != nil {
		firing.record(c, op, paths)
	}
	return firing
}

func (i *Injected) record(c *conn, op Op, paths []string) {
	f := Firing{Op: op, Session: c.named, Time: time.Now()}
	if len(paths) > 0 {
		f.Path = paths[0]
	}
	i.mu.Lock()
	i.firings = append(i.firings, f)
	first := len(i.firings) == 1
	i.mu.Unlock()
	if first {
		close(i.fired)
	}
	if i.left--; i.left == 0 {
		i.remove()
	}
	i.server.cfg.Logger.Info("fault fired", "action", i.Action, "op", op, "path", f.Path, "session", hex(f.Session))
}

// faulty runs a request with the fault that matches it, if any. It returns
// false if the request has to wait.
func (s *Server) faulty(c *conn, xid int32, op Op, paths []string, run func()) bool {
	if c.delayed {
		c.delayed = false
		run()
		return true
	}
	i := s.match(c, op, paths)
	if i == nil {
		run()
		return true
	}
	switch i.Action {
	case CutBefore:
		c.close()
	case DropReply:
		mark := len(c.out.b)
		run()
		c.out.b = c.out.b[:mark]
		c.close()
	case LeaveOutReply:
		mark := len(c.out.b)
		run()
		c.out.b = c.out.b[:mark]
	case CutAfter:
		run()
		c.close()
	case Refuse:
		s.touch(c.session)
		c.reply(xid, s.tree.zxid, code(i.Code), nil)
	case Misreport:
		c.misreport = code(i.Code)
		run()
		c.misreport = codeOK
	case DelayRequest:
		c.delayed = true
		c.stalledUntil = s.now().Add(i.Delay)
		s.wakeAt(c.stalledUntil)
		return false
	case DelayReply:
		if !s.paused && c.heldUntil.IsZero() {
			c.handOver() // what came before is not late
		}
		run()
		c.heldUntil = s.now().Add(i.Delay)
		s.wakeAt(c.heldUntil)
	case BlackHole:
		c.hole = true
	case BlackHoleAfter:
		mark := len(c.out.b)
		run()
		c.out.b = c.out.b[:mark]
		c.hole = true
	case ExpireSession:
		if sess := s.sessions[c.named]; sess != nil {
			s.expire(sess)
		}
		c.close()
	case StaleReads:
		if sess := s.sessions[c.named]; sess != nil && sess.replica == nil {
			s.lag(sess, s.tree.clone())
		}
		run()
	}
	return true
}

// faultPaths lists the paths that a request is about.
func faultPaths(op Op, d decoder) []string {
	switch op {
	case OpMulti, OpMultiRead:
		var paths []string
		ops, _ := decodeMulti(&d)
		for _, o := range ops {
			if o.create != nil {
				o.path = o.create.path
			}
			paths = append(paths, o.path)
		}
		return paths
	case OpSetWatches, OpSetWatches2:
		d.long()
		return slices.Concat(d.strings(), d.strings(), d.strings())
	case OpPing, OpAuth, OpCloseSession, OpWhoAmI, OpReconfig:
		return nil
	}
	return []string{d.string()}
}
