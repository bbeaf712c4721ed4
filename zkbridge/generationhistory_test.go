package zkbridge

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/messages"
)

func TestParseGeneration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]uint64{"0": 0, "7": 7, "007": 7, "18446744073709551615": 1<<64 - 1} {
		if got, err := ParseGeneration([]byte(text)); got != want || err != nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", " 7", "7\n", "+7", "-7", "0x7", "1_000", "seven", "18446744073709551616", strings.Repeat("x", 1<<20)} {
		_, err := ParseGeneration([]byte(text))
		if !errors.Is(err, messages.Reason_INVALID) || !strings.Contains(err.Error(), strconv.Quote(text)[:min(20, len(text))]) || len(err.Error()) > 200 {
			t.Errorf("%.20q: %.300v", text, err)
		}
	}
}

// historyModel is ZooKeeper's node and the process that reads it. The tests compare the generations of a generationHistory with it.
type historyModel struct {
	*rapid.T
	g generationHistory

	// ZooKeeper
	zxid    int64
	node    *nodeState // nil: missing
	writes  []nodeState
	watched bool

	// the process
	reads    []nodeState // results, without repetitions
	reading  *nodeState
	unread   bool   // the node has changed since the last read was started
	greatest uint64 // that at has returned for the newest czxid
}

// nodeState is a state of the node. A missing node has the value 0, of transaction 0.
type nodeState struct {
	data    string
	value   uint64
	stat    zk.Stat
	missing bool
}

func (m *historyModel) write(data string) {
	m.zxid++
	next := nodeState{data: data, stat: zk.Stat{Czxid: m.zxid, Mzxid: m.zxid}}
	next.value, _ = strconv.ParseUint(data, 10, 64)
	if m.node != nil {
		next.stat.Czxid, next.stat.Version = m.node.stat.Czxid, m.node.stat.Version+1
	}
	m.node = &next
	m.writes = append(m.writes, next)
	m.fireWatch()
}

// fireWatch delivers the watch event, which ZooKeeper does before any newer answer.
func (m *historyModel) fireWatch() {
	if m.watched {
		m.g.changed()
		m.watched, m.unread = false, true
	}
}

func (m *historyModel) state() nodeState {
	if m.node == nil {
		return nodeState{missing: true}
	}
	return *m.node
}

// want returns the generation at a czxid, if the generation was only raised.
func (m *historyModel) want(czxid int64) (value uint64) {
	for _, x := range m.writes {
		if x.stat.Mzxid <= czxid {
			value = x.value
		}
	}
	return value
}

// wantKnown reports whether the generation at a czxid must be known, if the generation was only raised.
func (m *historyModel) wantKnown(czxid int64) bool {
	seen := m.reads[max(0, len(m.reads)-maxSpans):]
	i, _ := slices.BinarySearchFunc(seen, czxid+1, func(x nodeState, c int64) int { return int(x.stat.Mzxid - c) })
	switch {
	case i == 0:
		return false
	case i == len(seen):
		return !m.unread
	case seen[i-1].missing:
		return seen[i].stat.Version == 0
	}
	return seen[i].stat.Version == seen[i-1].stat.Version+1
}

// startRead has ZooKeeper execute a read, which sets the watch. finishRead delivers its answer.
func (m *historyModel) startRead() {
	m.g.asking()
	now := m.state()
	m.reading, m.watched, m.unread = &now, true, false
}

func (m *historyModel) finishRead() error {
	now := m.reading
	m.reading = nil
	if n := len(m.reads); n == 0 || m.reads[n-1] != *now {
		m.reads = append(m.reads, *now)
	}
	return m.g.read([]byte(now.data), now.stat, !now.missing)
}

func (m *historyModel) raised() uint64 {
	return m.state().value + rapid.Uint64Range(0, 3).Draw(m.T, "raise")
}

// at returns the generation that the node had, and no generation that cannot be known.
func TestGenerations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &historyModel{T: t, zxid: 100}
		t.Repeat(map[string]func(*rapid.T){
			"others": func(t *rapid.T) { m.zxid += rapid.Int64Range(1, 5).Draw(t, "transactions") },
			"raise":  func(*rapid.T) { m.write(strconv.FormatUint(m.raised(), 10)) },
			"start a read": func(t *rapid.T) {
				if m.reading != nil {
					t.SkipNow()
				}
				m.startRead()
			},
			"finish the read": func(t *rapid.T) {
				if m.reading == nil {
					t.SkipNow()
				}
				if err := m.finishRead(); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				if m.reading != nil || len(m.reads) == 0 {
					return // whether the present generation is known is not defined
				}
				if m.g.unread() != m.unread {
					t.Fatalf("unread %v, want %v", m.g.unread(), m.unread)
				}
				for czxid := int64(90); czxid <= m.zxid+2; czxid++ {
					value, known := m.g.at(czxid)
					if known != m.wantKnown(czxid) || known && value != m.want(czxid) {
						t.Fatalf("at %d: %d, %v; it was %d; reads %+v", czxid, value, known, m.want(czxid), m.reads)
					}
				}
				if cap(m.g.spans) > 4*maxSpans {
					t.Fatalf("%d spans are kept", cap(m.g.spans))
				}
			},
		})
	})
}

// The generation that at returns for the newest czxid never decreases, whatever becomes of the node and
// of the ensemble; and a decrease of the node is reported.
func TestGenerationsNeverGoDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &historyModel{T: t, zxid: 100}
		var known uint64
		begun := false // the session has read the node, which it does before its first create
		t.Repeat(map[string]func(*rapid.T){
			"others":     func(t *rapid.T) { m.zxid += rapid.Int64Range(1, 50).Draw(t, "transactions") },
			"raise":      func(*rapid.T) { m.write(strconv.FormatUint(m.raised(), 10)) },
			"write":      func(t *rapid.T) { m.write(strconv.FormatUint(rapid.Uint64Range(0, 10).Draw(t, "value"), 10)) },
			"write text": func(*rapid.T) { m.write("text") },
			"delete": func(t *rapid.T) {
				if m.node == nil {
					t.SkipNow()
				}
				m.zxid++
				m.node = nil
				m.fireWatch()
			},
			"restore": func(t *rapid.T) { // its sessions end
				m.zxid = rapid.Int64Range(100, m.zxid).Draw(t, "zxid")
				m.writes = slices.DeleteFunc(m.writes, func(x nodeState) bool { return x.stat.Mzxid > m.zxid })
				m.node, m.reading, m.watched = nil, nil, false
				if n := len(m.writes); n > 0 && rapid.Bool().Draw(t, "with the node") {
					last := m.writes[n-1]
					m.node = &last
				}
				m.g.changed()
				begun = false
			},
			"read": func(t *rapid.T) {
				m.startRead()
				now := *m.reading
				err := m.finishRead()
				begun = true
				switch {
				case now.data == "text" || now.value < known:
					if err == nil {
						t.Fatalf("%+v after %d is not reported", now, known)
					}
				case now.value > known && err != nil:
					t.Fatal(err)
				}
				if now.data != "text" {
					known = max(known, now.value)
				}
			},
			"": func(t *rapid.T) {
				value, ok := m.g.at(m.zxid + 1) // the next create
				if !ok || !begun {
					return
				}
				if value < m.greatest || value != known {
					t.Fatalf("%d after %d, known is %d", value, m.greatest, known)
				}
				m.greatest = value
			},
		})
	})
}

func TestGenerationsReport(t *testing.T) {
	t.Parallel()
	var g generationHistory
	stat := zk.Stat{Czxid: 10, Mzxid: 20, Version: 3}
	if err := g.read([]byte("5"), stat, true); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		data   string
		exists bool
		want   string
	}{
		{"4", true, "/actorlock/generation went back to 4 by transaction 0x1e: the generation stays 5, of transaction 0x14"},
		{"", false, "/actorlock/generation was deleted: the generation stays 5"},
		{"five", true, `"five": it must be a decimal number from 0 to 18446744073709551615`},
	} {
		g.changed()
		g.asking()
		err := g.read([]byte(c.data), zk.Stat{Czxid: 10, Mzxid: 30, Version: 4}, c.exists)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.data, err, c.want)
		}
		if value, known := g.at(40); value != 5 || !known {
			t.Errorf("%q: then %d, %v", c.data, value, known)
		}
	}
}

// A node whose generation was lowered, or another node, tells nothing of earlier czxids.
func TestGenerationsAfterAChange(t *testing.T) {
	t.Parallel()
	type read struct {
		value   string
		czxid   int64
		mzxid   int64
		version int32
		err     bool
	}
	first := read{"5", 10, 1000, 3, false}
	for name, c := range map[string]struct {
		reads []read
		want  map[int64]string
	}{
		"raised":                       {[]read{{"9", 10, 1500, 4, false}}, map[int64]string{999: "?", 1000: "5", 1499: "5", 1500: "9"}},
		"raised twice":                 {[]read{{"9", 10, 1500, 5, false}}, map[int64]string{999: "?", 1000: "?", 1499: "?", 1500: "9"}},
		"restored and raised":          {[]read{{"9", 10, 500, 4, false}}, map[int64]string{499: "?", 500: "9", 1000: "9"}},
		"restored":                     {[]read{{"5", 10, 500, 2, true}}, map[int64]string{500: "?", 999: "?", 1000: "5"}},
		"restored to a smaller":        {[]read{{"9", 10, 1500, 4, false}, {"5", 10, 1000, 3, true}}, map[int64]string{1000: "?", 1500: "9"}},
		"restored and raised twice":    {[]read{{"9", 10, 1500, 4, false}, {"12", 10, 1200, 5, false}}, map[int64]string{1000: "?", 1199: "?", 1200: "12"}},
		"lowered and raised":           {[]read{{"4", 10, 1200, 4, true}, {"9", 10, 1500, 4, false}}, map[int64]string{1000: "?", 1499: "?", 1500: "9"}},
		"another node":                 {[]read{{"9", 1500, 1500, 0, false}}, map[int64]string{1000: "?", 1499: "?", 1500: "9"}},
		"another node, next in number": {[]read{{"9", 1400, 1500, 4, false}}, map[int64]string{1000: "?", 1499: "?", 1500: "9"}},
	} {
		var g generationHistory
		for i, r := range append([]read{first}, c.reads...) {
			g.changed()
			g.asking()
			err := g.read([]byte(r.value), zk.Stat{Czxid: r.czxid, Mzxid: r.mzxid, Version: r.version}, true)
			if (err != nil) != r.err {
				t.Errorf("%s: read %d: %v", name, i, err)
			}
		}
		for czxid, want := range c.want {
			got := "?"
			if value, known := g.at(czxid); known {
				got = strconv.FormatUint(value, 10)
			}
			if got != want {
				t.Errorf("%s: at %d: %s, want %s", name, czxid, got, want)
			}
		}
	}
}
