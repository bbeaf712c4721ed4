package lease

import (
	"testing"
	"time"
)

// v is a promise of which the clocks' error is one second.
const v = clockError * time.Second

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestBeliefCountsFromTheSending(t *testing.T) {
	var c ClientEnd
	want(t, "lapsed before the first answer", c.Lapsed(1<<60), false)
	number, got := c.Renew(10 * time.Second)
	want(t, "number", number, 1)
	want(t, "got", got, 0)
	want(t, "believes before the first answer", c.Believes(11*time.Second), false)
	c.Renewed(15*time.Second, number, v)
	want(t, "until", c.Until(), 10*time.Second+v-time.Second)
	want(t, "believes", c.Believes(c.Until()-1), true)
	want(t, "lapsed at the end", c.Lapsed(c.Until()), true)
}

func TestBeliefIsTheLatestOfAllAnswers(t *testing.T) {
	var c ClientEnd
	c.Renew(1 * time.Second)
	c.Renew(2 * time.Second)
	c.Renew(3 * time.Second)
	want(t, "an answer to what was never sent", c.Renewed(4*time.Second, 4, v), false)
	want(t, "an answer to nothing", c.Renewed(4*time.Second, 0, v), false)
	want(t, "until, by unknown numbers", c.Until(), 0)
	c.Renewed(4*time.Second, 2, v)
	until := c.Until()
	want(t, "a shorter promise", c.Renewed(5*time.Second, 3, v/2), true)
	want(t, "until, after a shorter promise", c.Until(), until)
	c.Renewed(5*time.Second, 3, 10*v)
	c.Renewed(5*time.Second, 1, 10*v)
	want(t, "until, by a second and a late answer", c.Until(), until)
	number, got := c.Renew(5 * time.Second)
	want(t, "number", number, 4)
	want(t, "got", got, 3)
}

func TestLapseIsFinal(t *testing.T) {
	var c ClientEnd
	first, _ := c.Renew(0)
	second, _ := c.Renew(time.Second)
	c.Renewed(2*time.Second, first, v)
	now := c.Until()
	c.Renewed(now, second, v)
	want(t, "lapsed, though an answer came at that moment", c.Lapsed(now-1), true)
	want(t, "believes", c.Believes(now-1), false)
	if number, _ := c.Renew(now); number != 0 {
		t.Errorf("renewal %d of a lapsed lease", number)
	}
}

func TestAnswerThatCameTooLateSaysNothing(t *testing.T) {
	var c ClientEnd
	first, _ := c.Renew(0)
	second, _ := c.Renew(v)
	c.Renewed(v-time.Second, first, v)
	want(t, "until", c.Until(), 0)
	c.Renewed(v+1, second, v)
	want(t, "believes", c.Believes(v+1), true)
}

func TestClientForgetsOldRenewals(t *testing.T) {
	var c ClientEnd
	for i := range 2 * maxSent {
		c.Renew(time.Duration(i))
	}
	c.Renewed(1000, maxSent, v)
	want(t, "until, by a renewal that is forgotten", c.Until(), 0)
	c.Renewed(1000, maxSent+1, v)
	want(t, "until, by the oldest that is known", c.Until(), maxSent+v-time.Second)
	want(t, "renewals that are kept", len(c.sent), maxSent-1)
}

func TestCountIsTheMaximumOfAllAnswers(t *testing.T) {
	s := NewServerEnd(0, 30*time.Second)
	want(t, "answered", s.Renew(10*time.Second, 1, 0, v), true)
	count := 10*time.Second + v + time.Second
	want(t, "count", s.Count(), count)
	want(t, "answered", s.Renew(11*time.Second, 2, 1, v/2), true)
	want(t, "count, after a shorter promise", s.Count(), count)
	want(t, "answered a number again", s.Renew(12*time.Second, 2, 2, v), false)
	want(t, "answered without a promise", s.Renew(12*time.Second, 3, 2, 0), false)
	want(t, "count, after what was not answered", s.Count(), count)
	want(t, "ended", s.Ended(count-1), false)
	want(t, "believed", s.Believed(count-1), true)
	want(t, "end", s.End(), count)
	want(t, "ended", s.Ended(count), true)
	want(t, "believed", s.Believed(count), false)
	want(t, "answered after the end", s.Renew(count-1, 4, 2, v), false)
}

func TestClientThatNeverRenews(t *testing.T) {
	s := NewServerEnd(5*time.Second, 30*time.Second)
	want(t, "believed", s.Believed(6*time.Second), false)
	want(t, "end", s.End(), 35*time.Second)
	want(t, "ended", s.Ended(35*time.Second-1), false)
	want(t, "ended", s.Ended(35*time.Second), true)
}

func TestUnconfirmedAnswersAreBounded(t *testing.T) {
	s := NewServerEnd(0, 30*time.Second)
	number := uint64(0)
	renew := func(got uint64) bool { number++; return s.Renew(time.Second, number, got, v) }
	for range maxUnconfirmed {
		want(t, "answered", renew(0), true)
	}
	want(t, "answered while too many are unconfirmed", renew(0), false)
	want(t, "answered after a confirmation", renew(1), true)
	want(t, "answered while too many are unconfirmed", renew(1), false)
	count := s.Count()
	s.Resume()
	want(t, "count on a new stream", s.Count(), count)
	for range maxUnconfirmed {
		want(t, "answered on a new stream", renew(1), true)
	}
	want(t, "answered while too many are unconfirmed", renew(1), false)
	want(t, "numbers that are kept", len(s.unconfirmed), maxUnconfirmed)
}

func TestServerEndsALease(t *testing.T) {
	s := NewServerEnd(0, 30*time.Second)
	s.Renew(0, 1, 0, v)
	s.Drain()
	want(t, "answered while draining", s.Renew(time.Second, 2, 1, v), false)
	want(t, "ended by draining", s.Ended(time.Second), false)
	s.LetGo()
	want(t, "ended by the client's word", s.Ended(time.Second), true)
	want(t, "believed", s.Believed(time.Second), false)
}
