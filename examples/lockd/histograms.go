package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// bounds are the upper bounds of the buckets in seconds, which are those of actors/telemetry.
var bounds = [...]float64{1e-5, 1e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.1, 2.5, 4, 5, 5.5, 7.5, 10, 11, 15, 20, 30, 33, 60, 66, 300, 1800}

// series names a series of a histogram.
type series struct{ kind, outcome, recipe string }

// histogram is a histogram of durations. Any goroutine may use it.
type histogram struct {
	mu  sync.RWMutex
	all map[series]*buckets
}

// buckets are one series.
type buckets struct {
	counts [len(bounds) + 1]atomic.Uint64 // of each bucket alone
	nanos  atomic.Int64                   // the sum
}

// observe counts a duration.
func (h *histogram) observe(s series, d time.Duration) {
	h.mu.RLock()
	b := h.all[s]
	h.mu.RUnlock()
	if b == nil {
		b = h.add(s)
	}
	i, _ := slices.BinarySearch(bounds[:], d.Seconds())
	b.counts[i].Add(1)
	b.nanos.Add(int64(d))
}

func (h *histogram) add(s series) *buckets {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[series]*buckets{}
	}
	if h.all[s] == nil {
		h.all[s] = &buckets{}
	}
	return h.all[s]
}

// write writes the histogram in Prometheus' format.
func (h *histogram) write(w io.Writer, name, help string) {
	h.mu.RLock()
	all := maps.Clone(h.all)
	h.mu.RUnlock()
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s histogram\n", name, help, name)
	for _, s := range slices.SortedFunc(maps.Keys(all), func(a, b series) int {
		return cmp.Or(cmp.Compare(a.recipe, b.recipe), cmp.Compare(a.kind, b.kind), cmp.Compare(a.outcome, b.outcome))
	}) {
		labels, b, count := fmt.Sprintf("kind=%q,outcome=%q,recipe=%q", s.kind, s.outcome, s.recipe), all[s], uint64(0)
		for i := range b.counts {
			count += b.counts[i].Load()
			bound := "+Inf"
			if i < len(bounds) {
				bound = strconv.FormatFloat(bounds[i], 'g', -1, 64)
			}
			fmt.Fprintf(w, "%s_bucket{%s,le=%q} %d\n", name, labels, bound, count)
		}
		fmt.Fprintf(w, "%s_sum{%s} %g\n%s_count{%s} %d\n", name, labels, time.Duration(b.nanos.Load()).Seconds(), name, labels, count)
	}
}

// reason returns the name of an error of package actors, as actors/telemetry has it.
func reason(err error) string {
	r := messages.Reason_CANCELLED // whose error is not the reason itself
	errors.As(err, &r)
	return strings.ToLower(r.String())
}
