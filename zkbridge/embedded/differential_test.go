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

// scriptServer is one server with the sessions that a script has on it. Two worlds
// that get the same script must tell the same story, zxids included.
type scriptServer struct {
	t        testing.TB
	addr     string
	sessions []*raw
	names    map[int64]string
	seen     map[string]int // how often a request of a kind succeeded or failed, and events came
}

func newWorld(t testing.TB, addr string, sessions int, seen map[string]int) *scriptServer {
	w := &scriptServer{t: t, addr: addr, names: map[int64]string{0: "-"}, seen: seen}
	for i := range sessions {
		w.sessions = append(w.sessions, nil)
		w.open(i)
	}
	return w
}

// longest is the session timeout of both: none may end by the way.
const longest = 40 * time.Second

func (w *scriptServer) open(i int) {
	c := session(w.t, w.addr, longest)
	w.sessions[i] = c
	w.names[c.id] = fmt.Sprintf("s%d", i)
}

func (w *scriptServer) owner(id int64) string {
	if name, ok := w.names[id]; ok {
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

// do runs a step and tells everything that any session saw of it.
func (w *scriptServer) do(s step) string {
	var story strings.Builder
	c := w.sessions[s.session]
	switch s.special {
	case "close", "end":
		fmt.Fprintf(&story, "close %s", w.tell(embedded.OpCloseSession, c.call(embedded.OpCloseSession)))
		fmt.Fprintf(&story, " closed=%v", c.closed())
		w.tellEvents(&story, c)
		if s.special == "close" {
			w.open(s.session)
			break
		}
		w.sessions = append(w.sessions[:s.session], w.sessions[s.session+1:]...)
	case "reattach":
		c.nc.Close()
		next := dialRaw(w.t, w.addr)
		fmt.Fprintf(&story, "attached=%v", next.attach(longest, c.id, c.password, 0))
		w.sessions[s.session] = next
		fmt.Fprint(&story, w.tell(s.op, next.call(s.op, s.fields...)))
	case "pipeline":
		var xids []int32
		for _, next := range s.more {
			xids = append(xids, c.request(next.op, next.fields...))
		}
		for i, next := range s.more {
			fmt.Fprintln(&story, w.tell(next.op, c.answer(xids[i])))
			w.tellEvents(&story, c) // those that came before this reply
		}
	default:
		story.WriteString(w.tell(s.op, c.call(s.op, s.fields...)))
	}
	for i, c := range w.sessions {
		fmt.Fprintf(&story, "\n  s%d %d", i, c.call(embedded.OpPing).zxid)
		w.tellEvents(&story, c)
	}
	return story.String()
}

// tell shows a reply, and counts it.
func (w *scriptServer) tell(op embedded.Op, r reply) string {
	text := show(w.t, op, r, w.owner)
	switch {
	case r.err != 0 || strings.Contains(text, "[-1 0"): // in a multi
		w.seen[op.String()+" failed"]++
	case op == embedded.OpMulti && strings.Count(text, "[") < 3, op == embedded.OpMultiRead && strings.Count(text, "[") < 2:
	default:
		w.seen[op.String()+" done"]++
	}
	return text
}

func (w *scriptServer) tellEvents(story *strings.Builder, c *raw) {
	events := c.takeEvents()
	for _, e := range events {
		w.seen["event "+e[:1]]++
	}
	slices.Sort(events) // the end of a session deletes in no promised order
	fmt.Fprintf(story, " events=%q", events)
}

// TestSameAsZooKeeper runs random scripts of three sessions here and on a
// real server. Both start empty, so that all zxids must be equal too.
func TestSameAsZooKeeper(t *testing.T) {
	zktest.OneRunIn(t, 8) // all scripts together have what must occur, so it is all or none
	t.Parallel()
	// Neither server may collect containers meanwhile: that takes zxids.
	real := zktest.Own(t, zktest.TickTime(2*time.Second), zktest.ContainerInterval(time.Hour))
	ours := embedded.Run(t, embedded.ServerConfig{ContainerInterval: time.Hour})
	const scripts, steps = 40, 150
	seen := map[string]int{}
	for n := range scripts {
		seed := uint64(n)
		passed := t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			a, b := newWorld(t, real.Addr(), 3, seen), newWorld(t, ours.Addr(), 3, map[string]int{})
			g := &randomScript{r: rand.New(rand.NewPCG(seed, 0)), root: fmt.Sprint("/r", seed), zxid: func() int64 { return a.sessions[0].zxid }}
			var before strings.Builder
			run := func(s step) {
				theirs, mine := a.do(s), b.do(s)
				fmt.Fprintf(&before, "%v\n\t%s\n", s, theirs)
				if theirs != mine {
					t.Log(before.String())
					t.Fatalf("%v\nZooKeeper: %s\nembedded:  %s", s, theirs, mine)
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
	for _, what := range everything() {
		if seen[what] == 0 {
			t.Errorf("no script had: %s", what)
		}
	}
}

// everything is what the scripts must contain: each request with success and with an error, if it can have one, and
// each kind of event.
func everything() []string {
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
