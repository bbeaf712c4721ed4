package requests

import "iter"

// Table is a map from the IDs of open requests. It needs no hash, since an ID tells its
// place: its lower half is that, from 1, and its upper half tells it from others that had
// the same place before. The zero Table is empty; so is nil, which nothing can be put into.
type Table[T any] struct {
	places []entry[T]
	free   ID // the first free place; 0 if there is none
	n      int
}

type entry[T any] struct {
	id   ID // or the next free place
	what *T // nil if it is free
}

// Add puts something in, at a free place, and gives its ID, which is never 0. To be unlike
// those that had the place before, it needs another number than they.
func (t *Table[T]) Add(number uint32, what *T) ID {
	i := t.free
	if i == 0 {
		t.places = append(t.places, entry[T]{})
		i = ID(len(t.places))
	} else {
		t.free = t.places[i-1].id
	}
	id := ID(number)<<32 | i
	t.places[i-1] = entry[T]{id, what}
	t.n++
	return id
}

// Put puts something in by an ID that it has in another Table. Who calls it does not call
// Add.
func (t *Table[T]) Put(id ID, what *T) {
	i := int(uint32(id))
	for len(t.places) < i {
		t.places = append(t.places, entry[T]{})
	}
	t.places[i-1] = entry[T]{id, what}
	t.n++
}

// At is what is in the Table by an ID, or nil.
func (t *Table[T]) At(id ID) *T {
	if i := uint32(id) - 1; t != nil && uint64(i) < uint64(len(t.places)) && t.places[i].id == id {
		return t.places[i].what
	}
	return nil
}

// Remove takes out what is in the Table by an ID, if anything is.
func (t *Table[T]) Remove(id ID) {
	if t.At(id) == nil {
		return
	}
	i := ID(uint32(id))
	t.places[i-1] = entry[T]{id: t.free}
	t.free = i
	t.n--
}

// Len is how many are in the Table.
func (t *Table[T]) Len() int {
	if t == nil {
		return 0
	}
	return t.n
}

// All are those in the Table. What is removed meanwhile does not come any more.
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
