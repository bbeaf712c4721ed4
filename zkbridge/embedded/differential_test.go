package embedded_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// scriptServer is a server with the sessions of a script. Two servers that run the same script must
// return the same results, zxids included.
type scriptServer struct {
	t        testing.TB
	addr     string
	sessions []*rawClient
	names    map[int64]string
	seen     map[string]int // how often a request of a kind succeeded or failed, and events came
}

func newScriptServer(t testing.TB, addr string, sessions int, seen map[string]int) *scriptServer {
	ss := &scriptServer{t: t, addr: addr, names: map[int64]string{0: "-"}, seen: seen}
	for i := range sessions {
		ss.sessions = append(ss.sessions, nil)
		ss.open(i)
	}
	return ss
}

// longest is the session timeout at both servers, so that no session expires.
const longest = 40 * time.Second

func (ss *scriptServer) open(i int) {
	c := openSession(ss.t, ss.addr, longest)
	ss.sessions[i] = c
	ss.names[c.id] = fmt.Sprintf("s%d", i)
}

func (ss *scriptServer) owner(id int64) string {
	if name, ok := ss.names[id]; ok {
		return name
	}
	return "?"
}

// step is one request of a script.
type step struct {
	session int
	op      embedded.Op
	fields  []any
	special string // "" or something else than a request
	more    []step // of a pipeline: requests that do not wait for the replies of those before
}

func (s step) String() string {
	return fmt.Sprintf("s%d %s %v %v %v", s.session, s.special, s.op, s.fields, s.more)
}

// run runs a step, and returns all that the sessions have received.
func (ss *scriptServer) run(s step) string {
	var text strings.Builder
	c := ss.sessions[s.session]
	switch s.special {
	case "close", "end":
		fmt.Fprintf(&text, "close %s", ss.show(embedded.OpCloseSession, c.call(embedded.OpCloseSession)))
		fmt.Fprintf(&text, " closed=%v", c.closed())
		ss.showEvents(&text, c)
		if s.special == "close" {
			ss.open(s.session)
			break
		}
		ss.sessions = append(ss.sessions[:s.session], ss.sessions[s.session+1:]...)
	case "reattach":
		c.nc.Close()
		next := dialRaw(ss.t, ss.addr)
		fmt.Fprintf(&text, "attached=%v", next.connect(longest, c.id, c.password, 0))
		ss.sessions[s.session] = next
		fmt.Fprint(&text, ss.show(s.op, next.call(s.op, s.fields...)))
	case "pipeline":
		var xids []int32
		for _, next := range s.more {
			xids = append(xids, c.request(next.op, next.fields...))
		}
		for i, next := range s.more {
			fmt.Fprintln(&text, ss.show(next.op, c.answer(xids[i])))
			ss.showEvents(&text, c) // those that came before this reply
		}
	default:
		text.WriteString(ss.show(s.op, c.call(s.op, s.fields...)))
	}
	for i, c := range ss.sessions {
		fmt.Fprintf(&text, "\n  s%d %d", i, c.call(embedded.OpPing).zxid)
		ss.showEvents(&text, c)
	}
	return text.String()
}

// show renders a reply, and counts it.
func (ss *scriptServer) show(op embedded.Op, r reply) string {
	text := show(ss.t, op, r, ss.owner)
	switch {
	case r.err != 0 || strings.Contains(text, "[-1 0"): // in a multi
		ss.seen[op.String()+" failed"]++
	case op == embedded.OpMulti && strings.Count(text, "[") < 3, op == embedded.OpMultiRead && strings.Count(text, "[") < 2:
	default:
		ss.seen[op.String()+" done"]++
	}
	return text
}

func (ss *scriptServer) showEvents(text *strings.Builder, c *rawClient) {
	events := c.takeEvents()
	for _, e := range events {
		ss.seen["event "+e[:1]]++
	}
	slices.Sort(events) // a session's nodes are deleted in any order
	fmt.Fprintf(text, " events=%q", events)
}

// TestSameAsZooKeeper runs random scripts of three sessions here and on a
// real server. Both start empty, so that all zxids must be equal too.
func TestSameAsZooKeeper(t *testing.T) {
	zktest.OneRunIn(t, 8) // all scripts together have all that is required
	t.Parallel()
	// Neither server may collect containers meanwhile: that takes zxids.
	real := zktest.Own(t, zktest.TickTime(2*time.Second), zktest.ContainerInterval(time.Hour))
	ours := embedded.Run(t, embedded.ServerConfig{ContainerInterval: time.Hour, Version: real.Version(t)})
	const scripts, steps = 40, 150
	seen := map[string]int{}
	for n := range scripts {
		seed := uint64(n)
		passed := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			a, b := newScriptServer(t, real.Addr(), 3, seen), newScriptServer(t, ours.Addr(), 3, map[string]int{})
			g := &randomScript{r: rand.New(rand.NewPCG(seed, 0)), root: fmt.Sprint("/r", seed), zxid: func() int64 { return a.sessions[0].zxid }}
			var before strings.Builder
			run := func(s step) {
				want, got := a.run(s), b.run(s)
				fmt.Fprintf(&before, "%v\n\t%s\n", s, want)
				if want != got {
					t.Log(before.String())
					t.Fatalf("%v\nZooKeeper: %s\nembedded:  %s", s, want, got)
				}
			}
			run(step{op: embedded.OpCreate, fields: []any{g.root, []byte(nil), open, 0}})
			run(step{op: embedded.OpCreate, fields: []any{g.root + "/c", []byte(nil), open, 0}})
			for range steps {
				run(g.next(3))
			}
			for range a.sessions {
				run(step{special: "end", op: embedded.OpCloseSession})
			}
		})
		if !passed {
			return
		}
	}
	for _, what := range required() {
		if seen[what] == 0 {
			t.Errorf("no script had: %s", what)
		}
	}
}

// required returns what all scripts together must contain: each request with success and with an
// error, if it can have one, and each kind of event.
func required() []string {
	list := []string{"event 1", "event 2", "event 3", "event 4"}
	for _, op := range []embedded.Op{embedded.OpCreate, embedded.OpCreate2, embedded.OpCreateContainer, embedded.OpCreateTTL,
		embedded.OpDelete, embedded.OpExists, embedded.OpGetData, embedded.OpSetData, embedded.OpGetChildren,
		embedded.OpGetChildren2, embedded.OpGetACL, embedded.OpSetACL, embedded.OpMulti, embedded.OpMultiRead,
		embedded.OpAddWatch, embedded.OpCheckWatches, embedded.OpRemoveWatches, embedded.OpGetAllChildrenNumber} {
		list = append(list, op.String()+" done", op.String()+" failed")
	}
	for _, op := range []embedded.Op{embedded.OpSync, embedded.OpAuth, embedded.OpWhoAmI, embedded.OpGetEphemerals,
		embedded.OpSetWatches, embedded.OpSetWatches2, embedded.OpCloseSession} {
		list = append(list, op.String()+" done")
	}
	return list
}
