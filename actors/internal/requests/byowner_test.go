package requests

import (
	"reflect"
	"testing"
)

func TestByOwner(t *testing.T) {
	var b ByOwner[int]
	equals := func(n int) func(int) bool { return func(v int) bool { return v == n } }
	b.Remove("me", equals(1)) // removes nothing
	for v, owner := range []string{"me", "you", "me", ""} {
		b.Add(owner, v)
	}
	b.Remove("me", equals(0))
	b.Remove("you", equals(1))
	if want := (ByOwner[int]{"me": {2}}); !reflect.DeepEqual(b, want) {
		t.Errorf("%v, want %v", b, want)
	}
}
