package requests

// Spare keeps values that are not in use, to be used again. The zero Spare has none.
type Spare[T any] struct{ free []*T }

// maxSpare bounds the values of a Spare.
const maxSpare = 64

// Take returns a value, as it was put or new.
func (s *Spare[T]) Take() *T {
	n := len(s.free)
	if n == 0 {
		return new(T)
	}
	v := s.free[n-1]
	s.free = s.free[:n-1]
	return v
}

// Put puts a value that is not in use any more.
func (s *Spare[T]) Put(v *T) {
	if len(s.free) < maxSpare {
		s.free = append(s.free, v)
	}
}
