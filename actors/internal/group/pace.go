package group

import "time"

// Interval returns the time between two publications of one of so many members that publishes again and
// again. Each member reads what each other one publishes: so the reads of all members together, in a second,
// stay about the same.
func Interval(members int) time.Duration {
	return min(time.Duration(members*members)*100*time.Microsecond, longestInterval)
}

// atOnce is how many times a member publishes without waiting for an Interval, after a time without changes.
// When one member comes or goes, it and the others show in so many publications, at most, what they wait for,
// give away, and lead then. With fewer, Leader is wrong for an Interval; without any bound, members that come
// together read each other's publications for several times as long.
const atOnce = 5

// Pace is when a member may publish, by its publications so far.
type Pace struct {
	even time.Time // when a publication would be due if all, those at once too, were an Interval apart
}

// Rest returns for how long the member must wait before it publishes. The member may publish now if the result
// is not positive. The result is at most the present interval. A publication in a larger
// group, from which members have left since, may have set even further ahead.
func (p Pace) Rest(now time.Time, interval time.Duration) time.Duration {
	return min(p.even.Add(-(atOnce-1)*interval).Sub(now), interval)
}

// Note counts a publication.
func (p *Pace) Note(now time.Time, interval time.Duration) {
	if p.even.Before(now) {
		p.even = now
	}
	p.even = p.even.Add(interval)
}
