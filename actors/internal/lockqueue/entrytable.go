package lockqueue

import (
	"cmp"
	"slices"
)

// entryTable has entries in the order of their serials, which is mostly that in which they come and go.
type entryTable struct {
	list []*entry
	gone *[]uint64 // the serials of those that were removed; nil if they are not noted
}

func (t *entryTable) find(serial uint64) (i int, is bool) {
	return slices.BinarySearchFunc(t.list, serial, func(e *entry, serial uint64) int { return cmp.Compare(e.serial, serial) })
}

func (t *entryTable) at(serial uint64) *entry {
	if i, is := t.find(serial); is {
		return t.list[i]
	}
	return nil
}

// put adds an entry, in the place of one with the same serial.
func (t *entryTable) put(e *entry) {
	i, is := t.find(e.serial)
	if is {
		t.list[i] = e
	} else {
		t.list = slices.Insert(t.list, i, e)
	}
}

func (t *entryTable) remove(serial uint64) {
	if t.gone != nil {
		*t.gone = append(*t.gone, serial)
	}
	if i, is := t.find(serial); is {
		t.list = removeAt(t.list, i)
	}
}
