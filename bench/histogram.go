package main

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// histogram counts durations in buckets of 1/64 of their value. The workers in other languages compute the same buckets, so
// that the counts of several processes can be added. A histogram has a page for each doubling that occurs, because many
// clients have one each, and a count must cost little in comparison with the measured operation.
type histogram struct{ pages [64 - subBuckets]*page }

type page [1 << subBuckets]int

// subBuckets is the binary logarithm of the number of buckets per doubling.
const subBuckets = 6

// bucketOf returns the bucket of a duration in nanoseconds: its leading seven bits, and the number of the others.
func bucketOf(ns int64) int {
	if ns < 1<<subBuckets {
		return int(max(ns, 0))
	}
	shift := bits.Len64(uint64(ns)) - subBuckets - 1
	return shift<<subBuckets + int(ns>>shift)
}

// middleOf returns the duration in the middle of a bucket.
func middleOf(bucket int) time.Duration {
	if bucket < 2<<subBuckets {
		return time.Duration(bucket)
	}
	shift := bucket>>subBuckets - 1
	lowest := int64(bucket-shift<<subBuckets) << shift
	return time.Duration(lowest + 1<<shift/2)
}

func (h *histogram) add(ns int64) { h.count(bucketOf(ns), 1) }

func (h *histogram) count(bucket, n int) {
	p := &h.pages[bucket>>subBuckets]
	if *p == nil {
		*p = new(page)
	}
	(*p)[bucket&(1<<subBuckets-1)] += n
}

// counts yields the buckets that are not empty, in order, with their counts.
func (h *histogram) counts() iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for i, p := range h.pages {
			if p == nil {
				continue
			}
			for j, n := range p {
				if n > 0 && !yield(i<<subBuckets+j, n) {
					return
				}
			}
		}
	}
}

func (h *histogram) merge(other *histogram) {
	for bucket, n := range other.counts() {
		h.count(bucket, n)
	}
}

func (h *histogram) total() (all int) {
	for _, n := range h.counts() {
		all += n
	}
	return all
}

// percentile returns the smallest duration that p percent of all do not exceed, or 0 if there are none.
func (h *histogram) percentile(p float64) time.Duration {
	rest := p / 100 * float64(h.total())
	for bucket, n := range h.counts() {
		if rest -= float64(n); rest <= 0 {
			return middleOf(bucket)
		}
	}
	return 0
}

// String returns the form of the protocol: "bucket:count,bucket:count".
func (h *histogram) String() string {
	var items []string
	for bucket, n := range h.counts() {
		items = append(items, fmt.Sprintf("%d:%d", bucket, n))
	}
	return strings.Join(items, ",")
}

func parseHistogram(text string) (h histogram, err error) {
	if text == "" {
		return h, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		bucket, count, _ := strings.Cut(item, ":")
		b, err := strconv.Atoi(bucket)
		n, err2 := strconv.Atoi(count)
		if err != nil || err2 != nil || b < 0 || b > bucketOf(math.MaxInt64) || n < 0 {
			return h, fmt.Errorf("histogram item %q: it must be bucket:count", item)
		}
		h.count(b, n)
	}
	return h, nil
}
