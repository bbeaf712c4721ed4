package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// A story is a history for a checker, with times in seconds.
type story struct {
	*checker
}

func (s story) grant(at, id int, who string, token int64, uses ...use) *holding {
	h := &holding{id: id, owner: who, token: actors.Token{Czxid: token}, uses: uses, nodes: []string{who}, session: 1, until: never,
		calm: func() time.Duration { return 0 }}
	s.granted(time.Duration(at)*time.Second, h)
	return h
}

var (
	oneMutex  = use{root + "/m0", 0, 1}
	delayed   = use{root + "/delay", 0, 1}
	reading   = use{root + "/rw", 0, 1}
	writing   = use{root + "/rw", 0, allReaders}
	onePermit = use{root + "/s3", 0, 1}
	two       = use{root + "/s3", 0, 2}
	intends   = use{root + "/custom", 1, 1}
	tableRead = use{root + "/custom", 2, 1}
)

// late is a grant of a process whose node was gone by a time, to which news take a second.
func (s story) late(at, id int, process string, token int64, gone int, uses ...use) {
	s.granted(time.Duration(at)*time.Second, onGone(id, process, token, gone, uses...))
}

func onGone(id int, process string, token int64, gone int, uses ...use) *holding {
	return &holding{id: id, owner: process, process: process, token: actors.Token{Czxid: token}, uses: uses, nodes: []string{process},
		taken: gone > 0, outlived: true, gone: time.Duration(gone) * time.Second, news: time.Second, until: never, calm: func() time.Duration { return never }}
}

// A checker that finds nothing is of no use: each of these is to be found, or not to be.
func TestChecker(t *testing.T) {
	for _, c := range []struct {
		name string
		tell func(s story)
		want string // "" for nothing
	}{
		{"one after the other", func(s story) { s.grant(1, 1, "a", 1, oneMutex); s.ended(0, 1); s.grant(2, 2, "b", 2, oneMutex) }, ""},
		{"two hold a mutex", func(s story) { s.grant(1, 1, "a", 1, oneMutex); s.grant(2, 2, "b", 2, oneMutex) }, "makes 2 of 1"},
		{"re-entry", func(s story) { s.grant(1, 1, "a", 1, oneMutex); s.grant(2, 2, "a", 1, oneMutex) }, ""},
		{"an owner holds twice by two nodes", func(s story) { s.grant(1, 1, "a", 1, oneMutex); s.grant(2, 2, "a", 2, oneMutex) }, "makes 2 of 1"},
		{"re-entry after a release", func(s story) { s.grant(1, 1, "a", 1, oneMutex); s.ended(0, 1); s.grant(2, 2, "a", 1, oneMutex) }, ""},
		{"an equal token", func(s story) { s.grant(1, 1, "a", 1, oneMutex); s.ended(0, 1); s.grant(2, 2, "b", 1, oneMutex) }, "not greater"},
		{"a smaller token", func(s story) { s.grant(1, 1, "a", 2, oneMutex); s.ended(0, 1); s.grant(2, 2, "b", 1, oneMutex) }, "not greater"},
		{"readers", func(s story) { s.grant(1, 1, "a", 2, reading); s.grant(2, 2, "b", 1, reading) }, ""},
		{"a writer beside a reader", func(s story) { s.grant(1, 1, "a", 1, reading); s.grant(2, 2, "b", 2, writing) }, "of 1000"},
		{"a reader beside a writer", func(s story) { s.grant(1, 1, "a", 1, writing); s.grant(2, 2, "b", 2, reading) }, "of 1000"},
		{"a downgrade", func(s story) { s.grant(1, 1, "a", 1, writing); s.grant(2, 2, "a", 1, reading) }, ""},
		{"a writer with a token below a reader's", func(s story) { s.grant(1, 1, "a", 3, reading); s.ended(0, 1); s.grant(2, 2, "b", 2, writing) }, "not greater"},
		{"three permits", func(s story) { s.grant(1, 1, "a", 1, two); s.grant(2, 2, "b", 2, onePermit) }, ""},
		{"four permits of three", func(s story) { s.grant(1, 1, "a", 1, two); s.grant(2, 2, "b", 2, two) }, "makes 4 of 3"},
		{"an owner's permits are its own", func(s story) { s.grant(1, 1, "a", 1, two); s.grant(2, 2, "a", 1, two) }, "makes 4 of 3"},
		{"one permit in any order", func(s story) { s.grant(1, 1, "a", 2, onePermit); s.grant(2, 2, "b", 1, onePermit) }, ""},
		{"kinds that exclude each other", func(s story) { s.grant(1, 1, "a", 1, intends); s.grant(2, 2, "b", 2, tableRead) }, "beside grant 1"},
		{"kinds that do not", func(s story) { s.grant(1, 1, "a", 1, intends); s.grant(2, 2, "b", 2, intends) }, ""},
		{"a multi-lock beside a member's holder", func(s story) { s.grant(1, 1, "a", 1, oneMutex); s.grant(2, 2, "b", 2, reading, oneMutex) }, "makes 2 of 1"},
		{"a lock-delay", func(s story) {
			s.grant(1, 1, "a", 1, delayed)
			s.lost(2*time.Second, 1)
			s.grant(4, 2, "b", 2, delayed)
		}, ""},
		{"a lock-delay that is too short", func(s story) {
			s.grant(1, 1, "a", 1, delayed)
			s.lost(2*time.Second, 1)
			s.grant(3, 2, "b", 2, delayed)
		}, "did not release"},
		{"no lock-delay after a release", func(s story) {
			s.grant(1, 1, "a", 1, delayed)
			s.ended(0, 1)
			s.grant(1, 2, "b", 2, delayed)
		}, ""},
		{"taken, and known in time", func(s story) {
			s.grant(1, 1, "a", 1, oneMutex)
			s.took(2*time.Second, hasNode("a"))
			s.grant(3, 2, "b", 2, oneMutex)
			s.tick(4 * time.Second)
			s.ended(0, 1)
			s.tick(time.Minute)
		}, ""},
		{"taken, and never known", func(s story) {
			s.grant(1, 1, "a", 1, oneMutex)
			s.took(2*time.Second, ofSession(1))
			s.tick(7 * time.Second)
		}, "does not know"},
		{"on a node that is gone, after another one", func(s story) {
			s.late(3, 1, "p", 2, 0, oneMutex)
			s.ended(3*time.Second, 1)
			s.late(4, 2, "q", 1, 2, oneMutex)
		}, "was made since"},
		{"on a node that is gone, and none ahead left later", func(s story) {
			s.late(3, 1, "p", 2, 0, oneMutex)
			s.ended(3*time.Second, 1)
			h := onGone(2, "q", 1, 2, oneMutex)
			h.outlived = false
			s.granted(4*time.Second, h)
		}, ""},
		{"on a node that is gone, before the news", func(s story) {
			s.late(3, 1, "p", 2, 0, oneMutex)
			s.ended(3*time.Second, 1)
			s.late(3, 2, "q", 1, 2, oneMutex)
		}, ""},
		{"on a node that is gone, from a holder without one", func(s story) {
			s.late(2, 1, "q", 1, 1, oneMutex)
			s.late(3, 2, "p", 3, 0, oneMutex)
			s.ended(4*time.Second, 1)
			s.late(4, 3, "q", 2, 2, oneMutex)
		}, ""},
		{"work that goes on under a lost session", func(s story) {
			s.grant(1, 1, "a", 1, oneMutex)
			s.lingers(2*time.Second, 1)
			s.grant(3, 2, "b", 2, oneMutex)
		}, "makes 2 of 1"},
		{"taken from another owner", func(s story) {
			s.grant(1, 1, "a", 1, oneMutex)
			s.took(2*time.Second, hasNode("other"))
			s.grant(3, 2, "b", 2, oneMutex)
		}, "makes 2 of 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := story{newChecker(specs())}
			c.tell(s)
			found := strings.Join(s.violations, "; ")
			if c.want == "" && found != "" || c.want != "" && !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}
