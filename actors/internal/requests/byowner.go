package requests

import "slices"

// ByOwner holds a list of values for each of some named owners. The zero ByOwner is empty.
type ByOwner[T any] map[string][]T

// Add adds a value to the list of an owner. It adds nothing for an owner without a name.
func (b *ByOwner[T]) Add(owner string, value T) {
	if owner == "" {
		return
	}
	if *b == nil {
		*b = ByOwner[T]{}
	}
	(*b)[owner] = append((*b)[owner], value)
}

// Remove removes those values of an owner for which remove returns true.
func (b ByOwner[T]) Remove(owner string, remove func(T) bool) {
	if left := slices.DeleteFunc(b[owner], remove); len(left) > 0 {
		b[owner] = left
	} else {
		delete(b, owner)
	}
}
