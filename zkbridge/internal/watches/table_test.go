package watches

import (
	"slices"
	"testing"
)

// wakeChannel is a recipient.
type wakeChannel chan any

func (m wakeChannel) Tell(msg any) { m <- msg }

// A failed watch does not end the interest of an earlier one.
func TestFailedWatchKeepsTheFirst(t *testing.T) {
	t.Parallel()
	recipient, table := make(wakeChannel), &Table{}
	table.OnRead(table.Add(recipient, "/d/n"), true)
	table.OnRead(table.Add(recipient, "/d/n"), false)
	if table.byRecipient[recipient]["/d/n"] == nil {
		t.Error("the first watch would lead to no Wake")
	}
	table.OnRead(table.Add(recipient, "/d/m"), false)
	if table.byRecipient[recipient]["/d/m"] != nil {
		t.Error("an interest without a watch is left")
	}
}

func TestWatchTable(t *testing.T) {
	t.Parallel()
	table := Table{Epoch: 7}
	a, b := make(wakeChannel, 10), make(wakeChannel, 10)
	wakes := func(m wakeChannel) (n int) { // since the last call
		for n = len(m); len(m) > 0; <-m {
		}
		return n
	}

	first := table.Add(a, "/d/n")
	if nodes, _ := table.Paths(); len(nodes) > 0 {
		t.Errorf("%v would be watched again before they are", nodes)
	}
	table.OnRead(first, true)
	children := table.Add(b, "/d/")
	table.OnRead(children, true)
	if nodes, directories := table.Paths(); !slices.Equal(nodes, []string{"/d/n"}) || !slices.Equal(directories, []string{"/d"}) {
		t.Errorf("watched again are the nodes %v and the directories %v", nodes, directories)
	}
	table.Remove(b, "/d/")
	second := table.Add(b, "/d/n") // its read is under way: the event stems from a's watch, or from b's own
	table.fire("/d/n", false)
	if wakes(a) != 1 || wakes(b) != 1 {
		t.Error("a or b received no Wake, or several")
	}
	third := table.Add(b, "/d/n") // b asks again after its Wake
	table.OnRead(second, true)
	table.OnRead(second, false)
	if table.byRecipient[b]["/d/n"] != third {
		t.Error("the answer to an earlier read has ended the interest")
	}
	table.OnRead(third, true)
	table.fire("/d/n", false)
	if wakes(a) != 0 || wakes(b) != 1 {
		t.Error("b received no Wake, or a received another one")
	}
	for _, deleted := range []bool{false, true} {
		early := table.Add(a, "/d/n")
		table.fire("/d/n", deleted) // before the reply
		table.OnRead(early, true)
		if len(table.byPath)+len(table.byRecipient) != 0 { // it would never be removed
			t.Errorf("left, deleted %v: %v", deleted, table)
		}
		table.fire("/d/n", deleted)
		if wakes(a) != 1 {
			t.Error("a did not receive one Wake")
		}
	}
	for _, path := range []string{"/d/1", "/d/2"} {
		table.Add(a, path)
		table.Add(b, path)
	}
	table.Remove(a, "/d/1")
	table.DropAll(b)
	table.fire("/d/1", true)
	table.fire("/d/2", true)
	if wakes(a) != 1 || wakes(b) != 0 {
		t.Error("interest did not end as it should")
	}
	table.Add(nil, "/d/3")
	if len(table.byPath)+len(table.byRecipient) != 0 {
		t.Errorf("left: %v", table)
	}
}
