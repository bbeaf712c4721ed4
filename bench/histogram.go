package main

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// histogram counts durations in buckets that are 1/64 of their value wide. The workers in other languages compute the
// same buckets, so that the counts of several processes can be added.
type histogram map[int]int

// subBuckets is how many buckets a doubling has, as a power of two.
const subBuckets = 6

// bucketOf gives the bucket of a duration in nanoseconds: the leading seven bits, and how many follow them.
func bucketOf(ns int64) int {
	if ns < 1<<subBuckets {
		return int(max(ns, 0))
	}
	shift := bits.Len64(uint64(ns)) - subBuckets - 1
	return shift<<subBuckets + int(ns>>shift)
}

// middleOf gives the duration in the middle of a bucket.
func middleOf(bucket int) time.Duration {
	if bucket < 2<<subBuckets {
		return time.Duration(bucket)
	}
	shift := bucket>>subBuckets - 1
	lowest := int64(bucket-shift<<subBuckets) << shift
	return time.Duration(lowest + 1<<shift/2)
}

func (h histogram) add(ns int64) { h[bucketOf(ns)]++ }

func (h histogram) merge(other histogram) {
	for bucket, n := range other {
		h[bucket] += n
	}
}

func (h histogram) count() (all int) {
	for _, n := range h {
		all += n
	}
	return all
}

// percentile gives the smallest duration that p percent of all do not exceed, and 0 where there are none.
func (h histogram) percentile(p float64) time.Duration {
	rest := p / 100 * float64(h.count())
	for _, bucket := range slices.Sorted(maps.Keys(h)) {
		if rest -= float64(h[bucket]); rest <= 0 {
			return middleOf(bucket)
		}
	}
	return 0
}

// String is the form in the protocol: "bucket:count,bucket:count".
func (h histogram) String() string {
	var items []string
	for _, bucket := range slices.Sorted(maps.Keys(h)) {
		items = append(items, fmt.Sprintf("%d:%d", bucket, h[bucket]))
	}
	return strings.Join(items, ",")
}

func parseHistogram(text string) (histogram, error) {
	h := histogram{}
	if text == "" {
		return h, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		bucket, count, _ := strings.Cut(item, ":")
		b, err := strconv.Atoi(bucket)
		n, err2 := strconv.Atoi(count)
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("histogram item %q: it must be bucket:count", item)
		}
		h[b] += n
	}
	return h, nil
}
