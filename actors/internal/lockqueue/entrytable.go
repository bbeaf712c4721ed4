package lockqueue

import "iter"

// entryTable is a map of entries by their serials. One entry needs no map: most locks have one at
// most.
type entryTable struct {
	one  *entry            // nil if there are none, or all are in more
	more map[uint64]*entry // the others
	gone *[]uint64         // the serials of those that were removed; nil if they are not noted
}

func (t *entryTable) at(serial uint64) *entry {
	if t.one != nil && t.one.serial == serial {
		return t.one
	}
	return t.more[serial]
}

// put adds an entry, in the place of one with the same serial.
func (t *entryTable) put(e *entry) {
	switch {
	case t.one != nil && t.one.serial == e.serial, t.len() == 0:
		t.one = e
	default:
		put(&t.more, e.serial, e)
	}
}

func (t *entryTable) remove(serial uint64) {
	if t.gone != nil {
		*t.gone = append(*t.gone, serial)
	}
	if t.one != nil && t.one.serial == serial {
		t.one = nil
	} else {
		delete(t.more, serial)
	}
}

func (t *entryTable) len() (n int) {
	if t.one != nil {
		n = 1
	}
	return n + len(t.more)
}

// all returns the entries in no order.
func (t *entryTable) all() iter.Seq2[uint64, *entry] {
	return func(yield func(uint64, *entry) bool) {
		if t.one != nil && !yield(t.one.serial, t.one) {
			return
		}
		for serial, e := range t.more {
			if !yield(serial, e) {
				return
			}
		}
	}
}
