package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestMedianAndSpread(t *testing.T) {
	for _, c := range []struct {
		values         []float64
		median, spread float64
	}{
		{nil, 0, 0},
		{[]float64{0, 0}, 0, 0},
		{[]float64{7}, 7, 0},
		{[]float64{4, 2}, 3, 2.0 / 3},
		{[]float64{9, 1, 5}, 5, 8.0 / 5},
		{[]float64{1, 100, 3, 2}, 2.5, 99 / 2.5},
	} {
		before := slices.Clone(c.values)
		if got := median(c.values); got != c.median {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.median)
		}
		if got := spread(c.values); got != c.spread {
			t.Errorf("spread of %v is %v, want %v", c.values, got, c.spread)
		}
		if !slices.Equal(before, c.values) {
			t.Errorf("%v was changed to %v", before, c.values)
		}
	}
}

func TestBucketsAreNarrowAndInOrder(t *testing.T) {
	last := -1
	for ns := int64(0); ns < 1<<40; ns += 1 + ns/200 {
		bucket := bucketOf(ns)
		if bucket < last || bucket > last+1 {
			t.Fatalf("%d ns is in bucket %d, and less in %d", ns, bucket, last)
		}
		last = bucket
		if off := int64(middleOf(bucket)) - ns; off*64 > ns || -off*64 > ns {
			t.Fatalf("%d ns is in bucket %d, whose middle is %v", ns, bucket, middleOf(bucket))
		}
	}
	if bucketOf(-5) != 0 {
		t.Errorf("a negative duration is in bucket %d", bucketOf(-5))
	}
}

func TestPercentiles(t *testing.T) {
	one, two := new(histogram), new(histogram)
	for _, n := range rand.Perm(1000) {
		h := one
		if n%3 == 0 {
			h = two
		}
		h.add(int64(n+1) * int64(time.Microsecond))
	}
	one.merge(two)
	for p, want := range map[float64]time.Duration{0.1: time.Microsecond, 50: 500 * time.Microsecond, 99: 990 * time.Microsecond, 100: time.Millisecond} {
		got := one.percentile(p)
		if off := (got - want).Abs(); off > want/50 {
			t.Errorf("percentile %v is %v, want about %v", p, got, want)
		}
	}
	if got := new(histogram).percentile(50); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}
