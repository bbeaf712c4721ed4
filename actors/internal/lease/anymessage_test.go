package lease

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// anyNumber draws numbers that a client or a server of ours may send, and others.
func anyNumber(t *rapid.T, near uint64) uint64 {
	near = min(max(near, 8), math.MaxUint64-8)
	return rapid.OneOf(rapid.Uint64Range(near-8, near+8), rapid.SampledFrom([]uint64{0, math.MaxUint64})).Draw(t, "number")
}

// Whatever a client sends, a lease ends once and for all, its count only grows, and the machine
// stays small.
func TestServerEndBearsAnyMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var now, count time.Duration
		ended := false
		s := NewServerEnd(0, 30*time.Second)
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) { now += time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "pause")) },
			"renew": func(t *rapid.T) {
				v := time.Duration(rapid.Int64Range(-int64(time.Second), int64(30*time.Second)).Draw(t, "v"))
				number := anyNumber(t, s.newest)
				if s.Renew(now, number, anyNumber(t, number), v) && (ended || v <= 0 || s.Count() < now+v) {
					t.Fatalf("answered with %v at %v, ended: %t, count: %v", v, now, ended, s.Count())
				}
			},
			"resume": func(*rapid.T) { s.Resume() },
			"": func(t *rapid.T) {
				if s.Count() < count || len(s.unconfirmed) > maxUnconfirmed {
					t.Fatalf("count %v, was %v; %d unconfirmed", s.Count(), count, len(s.unconfirmed))
				}
				if ended && !s.Ended(now) || s.Ended(now) && s.Believed(now) {
					t.Fatalf("the lease goes on at %v", now)
				}
				count, ended = s.Count(), s.Ended(now)
				if !ended && s.End() <= now {
					t.Fatalf("ends at %v, and it is %v", s.End(), now)
				}
			},
		})
	})
}

// Whatever a server sends, a lapse is final, and the client believes no longer than the answers to
// its own renewals allow.
func TestClientEndBearsAnyMessage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c ClientEnd
		var now, until, longest time.Duration
		lapsed := false
		t.Repeat(map[string]func(*rapid.T){
			"wait":  func(t *rapid.T) { now += time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "pause")) },
			"renew": func(*rapid.T) { c.Renew(now) },
			"answer": func(t *rapid.T) {
				v := rapid.OneOf(rapid.Int64Range(0, int64(30*time.Second)), rapid.SampledFrom([]int64{math.MinInt64, -1, math.MaxInt64})).Draw(t, "v")
				longest = max(longest, time.Duration(v))
				c.Renewed(now, anyNumber(t, c.number), time.Duration(v))
			},
			"": func(t *rapid.T) {
				if c.Until() < until || len(c.sent) > maxSent || c.Until() > until && c.Until() > now+min(longest, math.MaxInt64-now) {
					t.Fatalf("until %v, was %v; %d renewals", c.Until(), until, len(c.sent))
				}
				if lapsed && (!c.Lapsed(now) || c.Until() > until) || c.Believes(now) && now >= c.Until() {
					t.Fatalf("the lapsed lease goes on at %v", now)
				}
				until, lapsed = c.Until(), c.Lapsed(now)
			},
		})
	})
}
