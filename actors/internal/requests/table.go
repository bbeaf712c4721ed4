package requests

import "iter"

// Table is a map from the IDs of open requests. It needs no hash, since an ID says its place. The
// zero Table is empty. A nil Table is empty, too, and takes nothing in. A Table must not be copied
// unless it is empty.
type Table[T any] struct {
	places []slot[T]
	free   uint32 // the first free place; 0 if there is none
	n      uint32
	one    [1]slot[T] // the memory of places, if there is only one
}

type slot[T any] struct {
	id   ID // of a free place: the next free place
	what *T // nil if the place is free
}

// Add adds a value at a free place and returns its ID, which is never 0. number must differ from
// those of values that had the place before.
func (t *Table[T]) Add(number uint32, what *T) ID {
	i := t.free
	if i == 0 {
		t.addPlace()
		i = uint32(len(t.places))
	} else {
		t.free = uint32(t.places[i-1].id)
	}
	id := ID(number)<<32 | ID(i)
	t.places[i-1] = slot[T]{id, what}
	t.n++
	return id
}

func (t *Table[T]) addPlace() {
	if t.places == nil {
		t.places = t.one[:0]
	}
	t.places = append(t.places, slot[T]{})
}

// Put adds a value under an ID from another Table. A Table has either Add or Put called.
func (t *Table[T]) Put(id ID, what *T) {
	i := int(uint32(id))
	for len(t.places) < i {
		t.addPlace()
	}
	t.places[i-1] = slot[T]{id, what}
	t.n++
}

// At returns the value with an ID, or nil.
func (t *Table[T]) At(id ID) *T {
	if i := uint32(id) - 1; t != nil && uint64(i) < uint64(len(t.places)) && t.places[i].id == id {
		return t.places[i].what
	}
	return nil
}

// Remove removes the value with an ID, if there is one.
func (t *Table[T]) Remove(id ID) {
	if t.At(id) == nil {
		return
	}
	i := uint32(id)
	t.places[i-1] = slot[T]{id: ID(t.free)}
	t.free = i
	t.n--
}

// Len returns how many values the Table has.
func (t *Table[T]) Len() int {
	if t == nil {
		return 0
	}
	return int(t.n)
}

// All returns the values and their IDs. A value that is removed meanwhile does not come any more.
func (t *Table[T]) All() iter.Seq2[ID, *T] {
	return func(yield func(ID, *T) bool) {
		if t == nil {
			return
		}
		for i := range t.places {
			if p := t.places[i]; p.what != nil && !yield(p.id, p.what) {
				return
			}
		}
	}
}
