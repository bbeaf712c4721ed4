package writer

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMinBatch(t *testing.T) {
	inFlight := func(sizes ...int) (w Writer) {
		for _, n := range sizes {
			w.inFlight = append(w.inFlight, &batch{writes: make([]write, n)})
		}
		return w
	}
	for _, c := range []struct {
		sizes []int
		want  int
	}{{nil, 0}, {[]int{1}, 1}, {[]int{1, 2}, 3}, {[]int{maxOps}, maxOps / 2}} {
		if w := inFlight(c.sizes...); w.minBatch() != c.want {
			t.Errorf("beside %v: %d, want %d", c.sizes, w.minBatch(), c.want)
		}
	}
}

func TestFindSequential(t *testing.T) {
	children := []string{"a-10000000001", "a-b-0000000001", "a-0000000002x", "a-", "a--2147483647", "x"}
	for prefix, want := range map[string]string{"a-b-": "a-b-0000000001", "a-": "a--2147483647", "y": ""} {
		if got := findSequential(children, prefix); got != want {
			t.Errorf("%s: %q, not %q", prefix, got, want)
		}
	}
}
