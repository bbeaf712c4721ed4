package requests

import "iter"

// List is a list that its elements may leave from any place. The zero List is empty. It must not be
// copied unless it is empty.
type List[T any] struct {
	ends Element[T] // the list is a ring: this stands before the first element and behind the last
}

// Element is the place of an element in a List. The zero Element is in no List.
type Element[T any] struct {
	of         *T
	prev, next *Element[T]
}

// First returns the first element, or nil.
func (l *List[T]) First() *T {
	if l.ends.next == nil {
		return nil
	}
	return l.ends.next.of // an empty List has ends there, whose of is nil
}

// Append adds an element behind the others, by an Element that is in no List.
func (l *List[T]) Append(of *T, at *Element[T]) {
	if l.ends.next == nil {
		l.ends.prev, l.ends.next = &l.ends, &l.ends
	}
	*at = Element[T]{of, l.ends.prev, &l.ends}
	at.prev.next, at.next.prev = at, at
}

// Leave takes the element out of its List, if it is in one, and reports whether it was.
func (p *Element[T]) Leave() bool {
	if p.of == nil {
		return false
	}
	p.prev.next, p.next.prev = p.next, p.prev
	*p = Element[T]{}
	return true
}

// All returns the elements in their order. The loop may take out the element that it is at.
func (l *List[T]) All() iter.Seq[*T] {
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
