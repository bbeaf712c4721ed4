package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
)

// grantHistory makes a history for a checker. Its times are in seconds.
type grantHistory struct {
	*checker
}

func (g grantHistory) grant(at, id int, owner string, token int64, uses ...use) *heldGrant {
	h := &heldGrant{id: id, owner: owner, token: actors.Token{Czxid: token}, uses: uses, nodes: []string{owner}, session: 1, noticeBy: never,
		unaffectedSince: func() time.Duration { return 0 }}
	g.granted(time.Duration(at)*time.Second, h)
	return h
}

var (
	oneMutex   = use{root + "/m0", 0, 1}
	delayMutex = use{root + "/delay", 0, 1}
	readLock   = use{root + "/rw", 0, 1}
	writeLock  = use{root + "/rw", 0, rwCapacity}
	onePermit  = use{root + "/s3", 0, 1}
	twoPermits = use{root + "/s3", 0, 2}
	intention  = use{root + "/custom", 1, 1}
	tableRead  = use{root + "/custom", 2, 1}
)

// afterDeletion adds a grant whose node was deleted at a time, or not if that is 0. Any answer
// reaches its process within a second.
func (g grantHistory) afterDeletion(at, id int, process string, token int64, deleted int, uses ...use) {
	g.granted(time.Duration(at)*time.Second, deletedBefore(id, process, token, deleted, uses...))
}

func deletedBefore(id int, process string, token int64, deleted int, uses ...use) *heldGrant {
	return &heldGrant{id: id, owner: process, process: process, token: actors.Token{Czxid: token}, uses: uses, nodes: []string{process},
		invalidated: deleted > 0, predecessorOutlived: true, nodeDeletedAt: time.Duration(deleted) * time.Second, maxAnswerDelay: time.Second, noticeBy: never, unaffectedSince: func() time.Duration { return never }}
}

// The checker must find a violation in some of these histories, and none in the others.
func TestChecker(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps func(g grantHistory)
		want  string // "": no violation
	}{
		{"one after the other", func(g grantHistory) { g.grant(1, 1, "a", 1, oneMutex); g.ended(0, 1); g.grant(2, 2, "b", 2, oneMutex) }, ""},
		{"two hold a mutex", func(g grantHistory) { g.grant(1, 1, "a", 1, oneMutex); g.grant(2, 2, "b", 2, oneMutex) }, "use 2 of 1"},
		{"re-entry", func(g grantHistory) { g.grant(1, 1, "a", 1, oneMutex); g.grant(2, 2, "a", 1, oneMutex) }, ""},
		{"an owner holds twice by two nodes", func(g grantHistory) { g.grant(1, 1, "a", 1, oneMutex); g.grant(2, 2, "a", 2, oneMutex) }, "use 2 of 1"},
		{"re-entry after a release", func(g grantHistory) { g.grant(1, 1, "a", 1, oneMutex); g.ended(0, 1); g.grant(2, 2, "a", 1, oneMutex) }, ""},
		{"an equal token", func(g grantHistory) { g.grant(1, 1, "a", 1, oneMutex); g.ended(0, 1); g.grant(2, 2, "b", 1, oneMutex) }, "not greater"},
		{"a smaller token", func(g grantHistory) { g.grant(1, 1, "a", 2, oneMutex); g.ended(0, 1); g.grant(2, 2, "b", 1, oneMutex) }, "not greater"},
		{"readers", func(g grantHistory) { g.grant(1, 1, "a", 2, readLock); g.grant(2, 2, "b", 1, readLock) }, ""},
		{"a writer beside a reader", func(g grantHistory) { g.grant(1, 1, "a", 1, readLock); g.grant(2, 2, "b", 2, writeLock) }, "of 1000"},
		{"a reader beside a writer", func(g grantHistory) { g.grant(1, 1, "a", 1, writeLock); g.grant(2, 2, "b", 2, readLock) }, "of 1000"},
		{"a downgrade", func(g grantHistory) { g.grant(1, 1, "a", 1, writeLock); g.grant(2, 2, "a", 1, readLock) }, ""},
		{"a writer with a token below a reader's", func(g grantHistory) { g.grant(1, 1, "a", 3, readLock); g.ended(0, 1); g.grant(2, 2, "b", 2, writeLock) }, "not greater"},
		{"three permits", func(g grantHistory) { g.grant(1, 1, "a", 1, twoPermits); g.grant(2, 2, "b", 2, onePermit) }, ""},
		{"four permits of three", func(g grantHistory) { g.grant(1, 1, "a", 1, twoPermits); g.grant(2, 2, "b", 2, twoPermits) }, "use 4 of 3"},
		{"an owner's permits are its own", func(g grantHistory) { g.grant(1, 1, "a", 1, twoPermits); g.grant(2, 2, "a", 1, twoPermits) }, "use 4 of 3"},
		{"one permit in any order", func(g grantHistory) { g.grant(1, 1, "a", 2, onePermit); g.grant(2, 2, "b", 1, onePermit) }, ""},
		{"kinds that exclude each other", func(g grantHistory) { g.grant(1, 1, "a", 1, intention); g.grant(2, 2, "b", 2, tableRead) }, "beside grant 1"},
		{"kinds that do not", func(g grantHistory) { g.grant(1, 1, "a", 1, intention); g.grant(2, 2, "b", 2, intention) }, ""},
		{"a multi-lock beside a member's holder", func(g grantHistory) { g.grant(1, 1, "a", 1, oneMutex); g.grant(2, 2, "b", 2, readLock, oneMutex) }, "use 2 of 1"},
		{"a lock-delay", func(g grantHistory) {
			g.grant(1, 1, "a", 1, delayMutex)
			g.lost(2*time.Second, 1)
			g.grant(4, 2, "b", 2, delayMutex)
		}, ""},
		{"a lock-delay that is too short", func(g grantHistory) {
			g.grant(1, 1, "a", 1, delayMutex)
			g.lost(2*time.Second, 1)
			g.grant(3, 2, "b", 2, delayMutex)
		}, "did not release"},
		{"no lock-delay while a dropped request of the owner may be released", func(g grantHistory) {
			g.grant(1, 1, "a", 1, delayMutex)
			g.ownerEnded["a"] = 3 * time.Second
			g.lost(2*time.Second, 1)
			g.grant(3, 2, "b", 2, delayMutex)
		}, ""},
		{"no lock-delay after a release", func(g grantHistory) {
			g.grant(1, 1, "a", 1, delayMutex)
			g.ended(0, 1)
			g.grant(1, 2, "b", 2, delayMutex)
		}, ""},
		{"invalidated, and known in time", func(g grantHistory) {
			g.grant(1, 1, "a", 1, oneMutex)
			g.invalidate(2*time.Second, hasNode("a"))
			g.grant(3, 2, "b", 2, oneMutex)
			g.checkNoticed(4 * time.Second)
			g.ended(0, 1)
			g.checkNoticed(time.Minute)
		}, ""},
		{"invalidated, and never known", func(g grantHistory) {
			g.grant(1, 1, "a", 1, oneMutex)
			g.invalidate(2*time.Second, ofSession(1))
			g.checkNoticed(7 * time.Second)
		}, "does not know"},
		{"by a deleted node, after another grant", func(g grantHistory) {
			g.afterDeletion(3, 1, "p", 2, 0, oneMutex)
			g.ended(3*time.Second, 1)
			g.afterDeletion(4, 2, "q", 1, 2, oneMutex)
		}, "was made since"},
		{"by a deleted node, and none ahead left later", func(g grantHistory) {
			g.afterDeletion(3, 1, "p", 2, 0, oneMutex)
			g.ended(3*time.Second, 1)
			h := deletedBefore(2, "q", 1, 2, oneMutex)
			h.predecessorOutlived = false
			g.granted(4*time.Second, h)
		}, ""},
		{"by a deleted node, before an answer can report it", func(g grantHistory) {
			g.afterDeletion(3, 1, "p", 2, 0, oneMutex)
			g.ended(3*time.Second, 1)
			g.afterDeletion(3, 2, "q", 1, 2, oneMutex)
		}, ""},
		{"by a deleted node, after a holder whose node was deleted", func(g grantHistory) {
			g.afterDeletion(2, 1, "q", 1, 1, oneMutex)
			g.afterDeletion(3, 2, "p", 3, 0, oneMutex)
			g.ended(4*time.Second, 1)
			g.afterDeletion(4, 3, "q", 2, 2, oneMutex)
		}, ""},
		{"the same, whose release is on its way to the lock server", func(g grantHistory) {
			client := deletedBefore(1, "q", 1, 1, oneMutex)
			client.endDelay = 2 * time.Second
			g.granted(2*time.Second, client)
			g.ended(2*time.Second, 1)
			g.afterDeletion(3, 2, "p", 3, 0, oneMutex)
			g.ended(3*time.Second, 2)
			g.afterDeletion(4, 3, "q", 2, 2, oneMutex)
		}, ""},
		{"the same, whose release had come before", func(g grantHistory) {
			g.afterDeletion(2, 1, "q", 1, 1, oneMutex)
			g.ended(2*time.Second, 1)
			g.afterDeletion(3, 2, "p", 3, 0, oneMutex)
			g.ended(3*time.Second, 2)
			g.afterDeletion(4, 3, "q", 2, 2, oneMutex)
		}, "was made since"},
		{"work that goes on under a lost session", func(g grantHistory) {
			g.grant(1, 1, "a", 1, oneMutex)
			g.sessionLost(2*time.Second, 1)
			g.grant(3, 2, "b", 2, oneMutex)
		}, "use 2 of 1"},
		{"another grant is invalidated", func(g grantHistory) {
			g.grant(1, 1, "a", 1, oneMutex)
			g.invalidate(2*time.Second, hasNode("other"))
			g.grant(3, 2, "b", 2, oneMutex)
		}, "use 2 of 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := grantHistory{newChecker((&plan{}).lockSpecs())}
			c.steps(g)
			found := strings.Join(g.violations, "; ")
			if c.want == "" && found != "" || c.want != "" && !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}
