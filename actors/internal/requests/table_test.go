package requests

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// A Table, and another to which Put adds the same requests, have the contents that a map would
// have. No ID comes twice. The ID of a removed request finds nothing, also after another request
// has its place.
func TestTable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var table, copied Table[int]
	open, removed := map[ID]*int{}, map[ID]bool{}
	for number := range 20_000 {
		most := 1 + number%97
		if len(open) < most && random.IntN(3) > 0 {
			value := new(int)
			id := table.Add(uint32(number), value)
			if id == 0 || removed[id] || open[id] != nil {
				t.Fatalf("%x is no new ID", id)
			}
			copied.Put(id, value)
			open[id] = value
		} else {
			for id := range open {
				table.Remove(id)
				copied.Remove(id)
				delete(open, id)
				removed[id] = true
				break
			}
		}
		if table.Len() != len(open) || copied.Len() != len(open) {
			t.Fatalf("%d and %d requests, want %d", table.Len(), copied.Len(), len(open))
		}
	}
	if all := maps.Collect(table.All()); !maps.Equal(all, open) {
		t.Errorf("All returns %d requests, want %d", len(all), len(open))
	}
	for id, value := range open {
		if table.At(id) != value || copied.At(id) != value {
			t.Errorf("%x is not found", id)
		}
	}
	for id := range removed {
		table.Remove(id) // does nothing
		if table.At(id) != nil || copied.At(id) != nil {
			t.Errorf("%x is found after its removal", id)
		}
	}
	if len(table.places) > 97 || len(copied.places) > 97 {
		t.Errorf("%d places for 97 requests", len(table.places))
	}
	if table.Len() != len(open) {
		t.Errorf("%d requests, want %d", table.Len(), len(open))
	}
}

// A loop over All does not reach a request that is removed meanwhile.
func TestTableRemoveMeanwhile(t *testing.T) {
	var table Table[int]
	for range 10 {
		table.Add(1, new(int))
	}
	reached := 0
	for range table.All() {
		reached++
		for id := range table.All() {
			table.Remove(id)
		}
	}
	if reached != 1 || table.Len() != 0 {
		t.Errorf("%d are reached, %d are left", reached, table.Len())
	}
}

// No ID is in a Table that is nil or empty, not even 0.
func TestTableEmpty(t *testing.T) {
	for _, table := range []*Table[int]{nil, {}} {
		if table.At(0) != nil || table.At(1) != nil || table.Len() != 0 {
			t.Error("a request is found")
		}
		table.Remove(1)
		for range table.All() {
			t.Error("All reaches a request")
		}
	}
}
