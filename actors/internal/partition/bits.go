package partition

import "iter"

// Bits is a set of partitions. A short one has none of those beyond its end.
type Bits []byte

// NewBits returns an empty set for n partitions.
func NewBits(n int) Bits { return make(Bits, (n+7)/8) }

// Has reports whether p is in the set.
func (b Bits) Has(p int) bool { return p/8 < len(b) && b[p/8]>>(p%8)&1 == 1 }

// Put adds p to the set, or removes it.
func (b Bits) Put(p int, in bool) {
	if in {
		b[p/8] |= 1 << (p % 8)
	} else {
		b[p/8] &^= 1 << (p % 8)
	}
}

// within returns the set without what is not one of n partitions. It may write to b.
func (b Bits) within(n int) Bits {
	if len(b) < (n+7)/8 {
		return b
	}
	b = b[:(n+7)/8]
	if n%8 > 0 {
		b[n/8] &= 1<<(n%8) - 1
	}
	return b
}

// All returns the partitions of the set, in order.
func (b Bits) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, eight := range b {
			for bit := 0; eight != 0; bit, eight = bit+1, eight>>1 {
				if eight&1 == 1 && !yield(8*i+bit) {
					return
				}
			}
		}
	}
}
