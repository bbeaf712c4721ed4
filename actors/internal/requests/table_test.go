package requests

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// A Table, and another that follows it, have the contents that a map would have. No ID comes twice. The
// ID of a removed request finds nothing, also after another request has its place.
func TestTable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var table, follower Table[int]
	open, gone := map[ID]*int{}, map[ID]bool{}
	for number := range 20_000 {
		most := 1 + number%97
		if len(open) < most && random.IntN(3) > 0 {
			what := new(int)
			id := table.Add(uint32(number), what)
			if id == 0 || gone[id] || open[id] != nil {
				t.Fatalf("%x is no new ID", id)
			}
			follower.Put(id, what)
			open[id] = what
		} else {
			for id := range open {
				table.Remove(id)
				follower.Remove(id)
				delete(open, id)
				gone[id] = true
				break
			}
		}
		if table.Len() != len(open) || follower.Len() != len(open) {
			t.Fatalf("%d and %d of %d", table.Len(), follower.Len(), len(open))
		}
	}
	if all := maps.Collect(table.All()); !maps.Equal(all, open) {
		t.Errorf("%d of %d", len(all), len(open))
	}
	for id, what := range open {
		if table.At(id) != what || follower.At(id) != what {
			t.Errorf("%x is not there", id)
		}
	}
	for id := range gone {
		table.Remove(id) // does nothing
		if table.At(id) != nil || follower.At(id) != nil {
			t.Errorf("%x is still there", id)
		}
	}
	if len(table.places) > 97 || len(follower.places) > 97 {
		t.Errorf("%d places for 97", len(table.places))
	}
	if table.Len() != len(open) {
		t.Errorf("%d of %d", table.Len(), len(open))
	}
}

// A loop over all requests does not reach one that is removed meanwhile.
func TestTableRemoveMeanwhile(t *testing.T) {
	var table Table[int]
	for range 10 {
		table.Add(1, new(int))
	}
	came := 0
	for range table.All() {
		came++
		for id := range table.All() {
			table.Remove(id)
		}
	}
	if came != 1 || table.Len() != 0 {
		t.Errorf("%d came, %d are left", came, table.Len())
	}
}

// No ID is in a Table that is nil or empty, not even 0.
func TestTableEmpty(t *testing.T) {
	for _, table := range []*Table[int]{nil, {}} {
		if table.At(0) != nil || table.At(1) != nil || table.Len() != 0 {
			t.Error("something is there")
		}
		table.Remove(1)
		for range table.All() {
			t.Error("something comes")
		}
	}
}
