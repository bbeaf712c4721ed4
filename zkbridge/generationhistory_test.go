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

// witness is what TestGenerations tells to be seen of the node, and compares at with.
type witness struct {
	*rapid.T
	g generationHistory

	// ZooKeeper
	zxid    int64
	node    *written // nil: missing
	writes  []written
	watched bool

	// the process
	reads    []written // that were taken, different ones, in order
	inFlight *written
	due      bool
	greatest uint64 // that at has returned for the newest czxid
}

// written is a state of the node. One that is missing is a write of 0 by transaction 0.
type written struct {
	data    string
	value   uint64
	stat    zk.Stat
	missing bool
}

func (w *witness) write(data string) {
	w.zxid++
	next := written{data: data, stat: zk.Stat{Czxid: w.zxid, Mzxid: w.zxid}}
	next.value, _ = strconv.ParseUint(data, 10, 64)
	if w.node != nil {
		next.stat.Czxid, next.stat.Version = w.node.stat.Czxid, w.node.stat.Version+1
	}
	w.node = &next
	w.writes = append(w.writes, next)
	w.fire()
}

// fire delivers the watch, which ZooKeeper does before any newer answer.
func (w *witness) fire() {
	if w.watched {
		w.g.changed()
		w.watched, w.due = false, true
	}
}

func (w *witness) now() written {
	if w.node == nil {
		return written{missing: true}
	}
	return *w.node
}

// truth is the generation that was in force at a czxid, as long as it was only raised.
func (w *witness) truth(czxid int64) (value uint64) {
	for _, x := range w.writes {
		if x.stat.Mzxid <= czxid {
			value = x.value
		}
	}
	return value
}

// exact reports whether a czxid's generation must be known, as long as it was only raised.
func (w *witness) exact(czxid int64) bool {
	seen := w.reads[max(0, len(w.reads)-maxSpans):]
	i, _ := slices.BinarySearchFunc(seen, czxid+1, func(x written, c int64) int { return int(x.stat.Mzxid - c) })
	switch {
	case i == 0:
		return false
	case i == len(seen):
		return !w.due
	case seen[i-1].missing:
		return seen[i].stat.Version == 0
	}
	return seen[i].stat.Version == seen[i-1].stat.Version+1
}

// take has ZooKeeper execute the read, which sets the watch. answer has the process hear.
func (w *witness) take() {
	w.g.asking()
	now := w.now()
	w.inFlight, w.watched, w.due = &now, true, false
}

func (w *witness) answer() error {
	now := w.inFlight
	w.inFlight = nil
	if n := len(w.reads); n == 0 || w.reads[n-1] != *now {
		w.reads = append(w.reads, *now)
	}
	return w.g.read([]byte(now.data), now.stat, !now.missing)
}

func (w *witness) raise() uint64 { return w.now().value + rapid.Uint64Range(0, 3).Draw(w.T, "raise") }

// at returns the generation that the node had, and no generation that cannot be known.
func TestGenerations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &witness{T: t, zxid: 100}
		t.Repeat(map[string]func(*rapid.T){
			"others": func(t *rapid.T) { w.zxid += rapid.Int64Range(1, 5).Draw(t, "transactions") },
			"raise":  func(*rapid.T) { w.write(strconv.FormatUint(w.raise(), 10)) },
			"take": func(t *rapid.T) {
				if w.inFlight != nil {
					t.SkipNow()
				}
				w.take()
			},
			"answer": func(t *rapid.T) {
				if w.inFlight == nil {
					t.SkipNow()
				}
				if err := w.answer(); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				if w.inFlight != nil || len(w.reads) == 0 {
					return // what is known of the present is not defined
				}
				if w.g.unread() != w.due {
					t.Fatalf("unread %v, want %v", w.g.unread(), w.due)
				}
				for czxid := int64(90); czxid <= w.zxid+2; czxid++ {
					value, known := w.g.at(czxid)
					if known != w.exact(czxid) || known && value != w.truth(czxid) {
						t.Fatalf("at %d: %d, %v; it was %d; reads %+v", czxid, value, known, w.truth(czxid), w.reads)
					}
				}
				if cap(w.g.spans) > 4*maxSpans {
					t.Fatalf("%d spans are kept", cap(w.g.spans))
				}
			},
		})
	})
}

// The generation that at returns for the newest czxid never decreases, whatever becomes of the node and
// of the ensemble; and a decrease of the node is reported.
func TestGenerationsNeverGoDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &witness{T: t, zxid: 100}
		var known uint64
		begun := false // the session has read the node, which it does before it creates anything
		t.Repeat(map[string]func(*rapid.T){
			"others": func(t *rapid.T) { w.zxid += rapid.Int64Range(1, 50).Draw(t, "transactions") },
			"raise":  func(*rapid.T) { w.write(strconv.FormatUint(w.raise(), 10)) },
			"write":  func(t *rapid.T) { w.write(strconv.FormatUint(rapid.Uint64Range(0, 10).Draw(t, "value"), 10)) },
			"spoil":  func(*rapid.T) { w.write("spoilt") },
			"delete": func(t *rapid.T) {
				if w.node == nil {
					t.SkipNow()
				}
				w.zxid++
				w.node = nil
				w.fire()
			},
			"restore": func(t *rapid.T) { // its sessions end
				w.zxid = rapid.Int64Range(100, w.zxid).Draw(t, "zxid")
				w.writes = slices.DeleteFunc(w.writes, func(x written) bool { return x.stat.Mzxid > w.zxid })
				w.node, w.inFlight, w.watched = nil, nil, false
				if n := len(w.writes); n > 0 && rapid.Bool().Draw(t, "with the node") {
					last := w.writes[n-1]
					w.node = &last
				}
				w.g.changed()
				begun = false
			},
			"read": func(t *rapid.T) {
				w.take()
				now := *w.inFlight
				err := w.answer()
				begun = true
				switch {
				case now.data == "spoilt" || now.value < known:
					if err == nil {
						t.Fatalf("%+v after %d is not reported", now, known)
					}
				case now.value > known && err != nil:
					t.Fatal(err)
				}
				if now.data != "spoilt" {
					known = max(known, now.value)
				}
			},
			"": func(t *rapid.T) {
				value, ok := w.g.at(w.zxid + 1) // the next create
				if !ok || !begun {
					return
				}
				if value < w.greatest || value != known {
					t.Fatalf("%d after %d, known is %d", value, w.greatest, known)
				}
				w.greatest = value
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
		says   string
	}{
		{"4", true, "/actorlock/generation went back to 4 by transaction 0x1e: the generation stays 5, of transaction 0x14"},
		{"", false, "/actorlock/generation was deleted: the generation stays 5"},
		{"five", true, `"five": it must be a decimal number from 0 to 18446744073709551615`},
	} {
		g.changed()
		g.asking()
		err := g.read([]byte(c.data), zk.Stat{Czxid: 10, Mzxid: 30, Version: 4}, c.exists)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v; want %q", c.data, err, c.says)
		}
		if value, known := g.at(40); value != 5 || !known {
			t.Errorf("%q: then %d, %v", c.data, value, known)
		}
	}
}

// A node that went back, or another one, says nothing of czxids before it.
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
