package requests

import "iter"

// Line is a list that its elements may leave from any place. The zero Line is empty. It must not be
// copied unless it is empty.
type Line[T any] struct {
	ends Place[T] // the list is a ring: this stands before the first element and behind the last
}

// Place is the place of an element in a Line. The zero Place is in no Line.
type Place[T any] struct {
	of         *T
	prev, next *Place[T]
}

// First returns the first element, or nil.
func (l *Line[T]) First() *T {
	if l.ends.next == nil {
		return nil
	}
	return l.ends.next.of // an empty Line has ends there, whose of is nil
}

// Append adds an element behind the others, at a Place of its own that is in no Line.
func (l *Line[T]) Append(of *T, at *Place[T]) {
	if l.ends.next == nil {
		l.ends.prev, l.ends.next = &l.ends, &l.ends
	}
	*at = Place[T]{of, l.ends.prev, &l.ends}
	at.prev.next, at.next.prev = at, at
}

// Leave takes the element out of its Line, if it is in one, and reports whether it was.
func (p *Place[T]) Leave() bool {
	if p.of == nil {
		return false
	}
	p.prev.next, p.next.prev = p.next, p.prev
	*p = Place[T]{}
	return true
}

// All returns the elements in their order. The loop may take out the element that it is at.
func (l *Line[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for p := l.ends.next; p != nil && p != &l.ends; {
			next := p.next
			if !yield(p.of) {
				return
			}
			p = next
		}
	}
}
