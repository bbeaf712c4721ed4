package main

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// The page shows a group as a grid with the leader of each partition, and the partitions that move. It shows
// the locks of the partitions in no other way.
func TestPageShowsGroups(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		b, path := open(t), s.Path(t)
		join := func(data string) (leave func()) {
			ctx, cancel := context.WithCancel(t.Context())
			left, shards := make(chan struct{}), connect(t, s).Partitions(path+"/shards", 8)
			go func() {
				defer close(left)
				shards.Join(ctx, []byte(data), func(term *actors.PartitionTerm) { <-term.Context().Done() })
			}()
			return func() {
				cancel()
				<-left
			}
		}
		at := fmt.Sprintf(`document.querySelector('[data-group="%s/shards"]')`, path)
		members := at + `?.querySelector(".members").innerText.split("\n").sort().join("|")`
		count := func(selector string) string { return fmt.Sprintf(`%s.querySelectorAll('%s').length`, at, selector) }
		leaveAnn := join("ann")
		defer leaveAnn()
		grant := acquire(t, connect(t, s).Mutex(path+"/orders"))
		defer runtime.KeepAlive(grant)
		b.visit(startLockview(t, optionsFor(t, s, pageOptions{root: path})))
		b.waitValue(members, "ann: 8")
		b.waitValue(at+`.querySelector(".sum").textContent`, "8 partitions · 1 member")
		leaveBob := join("bob<b>")
		defer leaveBob()
		b.waitValue(members, "ann: 4|bob<b>: 4")
		b.waitValue(count(`i[title$="bob<b>"]`), "4")
		b.waitValue(at+`.querySelector(".sum").textContent`, "8 partitions · 2 members · 4 moved in the last minute")
		b.waitValue(`[...document.querySelectorAll(".lock")].map(e => e.dataset.path).join()`, path+"/orders")
		b.screenshot("groups-" + s.Name())
		leaveAnn()
		b.waitValue(count(`i[title$="bob<b>"]`), "8")
		leaveBob()
		b.waitValue(`document.querySelectorAll(".group").length`, "0")
		b.checkErrors()
	})
}
