package zkbridge

import (
	"slices"
	"testing"
)

// A failed watch does not end the interest of an earlier one.
func TestFailedWatchKeepsTheFirst(t *testing.T) {
	t.Parallel()
	recipient, table := make(mailbox), &watchTable{}
	table.onRead(table.add(recipient, "/d/n"), true)
	table.onRead(table.add(recipient, "/d/n"), false)
	if table.byRecipient[recipient]["/d/n"] == nil {
		t.Error("the first watch would lead to no Wake")
	}
	table.onRead(table.add(recipient, "/d/m"), false)
	if table.byRecipient[recipient]["/d/m"] != nil {
		t.Error("an interest without a watch is left")
	}
}

func TestWatchTable(t *testing.T) {
	t.Parallel()
	ep := &epoch{number: 7, actor: &bridgeActor{cfg: &settings{}}}
	var table watchTable
	a, b := newUser(t, nil), newUser(t, nil)
	wakes := func(u *user) (n int) { // since the last call
		for n = len(u.mailbox); len(u.mailbox) > 0; <-u.mailbox {
		}
		return n
	}

	first := table.add(a, "/d/n")
	if nodes, _ := table.paths(); len(nodes) > 0 {
		t.Errorf("%v would be watched again before they are", nodes)
	}
	table.onRead(first, true)
	children := table.add(b, "/d/")
	table.onRead(children, true)
	if nodes, directories := table.paths(); !slices.Equal(nodes, []string{"/d/n"}) || !slices.Equal(directories, []string{"/d"}) {
		t.Errorf("watched again are the nodes %v and the directories %v", nodes, directories)
	}
	table.remove(b, "/d/")
	second := table.add(b, "/d/n") // its read is under way: the event stems from a's watch, or from b's own
	table.fire(ep, "/d/n", false)
	if wakes(a) != 1 || wakes(b) != 1 {
		t.Error("a or b received no Wake, or several")
	}
	third := table.add(b, "/d/n") // b asks again after its Wake
	table.onRead(second, true)
	table.onRead(second, false)
	if table.byRecipient[b]["/d/n"] != third {
		t.Error("the answer to an earlier read has ended the interest")
	}
	table.onRead(third, true)
	table.fire(ep, "/d/n", false)
	if wakes(a) != 0 || wakes(b) != 1 {
		t.Error("b received no Wake, or a received another one")
	}
	for _, deleted := range []bool{false, true} {
		early := table.add(a, "/d/n")
		table.fire(ep, "/d/n", deleted) // before the reply
		table.onRead(early, true)
		if len(table.byPath)+len(table.byRecipient) != 0 { // it would never be removed
			t.Errorf("left, deleted %v: %v", deleted, table)
		}
		table.fire(ep, "/d/n", deleted)
		if wakes(a) != 1 {
			t.Error("a did not receive one Wake")
		}
	}
	for _, path := range []string{"/d/1", "/d/2"} {
		table.add(a, path)
		table.add(b, path)
	}
	table.remove(a, "/d/1")
	table.dropAll(b)
	table.fire(ep, "/d/1", true)
	table.fire(ep, "/d/2", true)
	if wakes(a) != 1 || wakes(b) != 0 {
		t.Error("interest did not end as it should")
	}
	table.add(nil, "/d/3")
	if len(table.byPath)+len(table.byRecipient) != 0 {
		t.Errorf("left: %v", table)
	}
}
