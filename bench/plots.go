package main

import (
	"cmp"
	"math"
	"slices"
)

// The panels of a scenario: rows of peers, throughput to the left, latency to the right.
const (
	plotWidth = 960
	rowHeight = 30
	rowsTop   = 66
	leftFrom  = 130
	leftTo    = 470
	rightFrom = 570
	rightTo   = 900
)

// plotScenario draws the throughput of each peer, with the slowest and fastest round, and its latency, p50 to p99.
func plotScenario(name string, list []*summary) string {
	bottom := float64(rowsTop + rowHeight*len(list))
	d := newDrawing(plotWidth, int(bottom)+40, name+": more acquires per second and less time are better")
	var rates, times []float64
	for _, s := range list {
		rates = append(rates, s.ops, s.low, s.high)
		times = append(times, s.p50, s.p99)
	}
	rate, latency := axisOver(leftFrom, leftTo, rates...), axisOver(rightFrom, rightTo, times...)
	d.columns(rate, rowsTop, bottom, "per second (log scale), line: slowest to fastest round")
	d.columns(latency, rowsTop, bottom, "us (log scale), p50 (dot) to p99")
	for i, s := range list {
		y, colour := float64(rowsTop+rowHeight*i)+rowHeight/2, colourOf(s.peer)
		d.text(leftFrom-10, y+4, "end", s.peer)
		d.rect(leftFrom, y-8, rate.at(s.ops)-leftFrom, 16, colour)
		d.line(rate.at(s.low), y, rate.at(s.high), y, ink, 1.5)
		d.text(max(rate.at(s.ops), rate.at(s.high))+6, y+4, "start", number(s.ops))
		if s.p50 > 0 {
			d.line(latency.at(s.p50), y, latency.at(s.p99), y, colour, 3)
			d.dot(latency.at(s.p50), y, colour)
			d.line(latency.at(s.p99), y-5, latency.at(s.p99), y+5, colour, 3)
		}
	}
	return d.end()
}

// columns draws the vertical lines of an axis, with a title above and numbers below.
func (d *drawing) columns(x axis, top, bottom float64, title string) {
	d.text(x.a, top-16, "start", title)
	for _, tick := range x.ticks() {
		d.line(x.at(tick), top-6, x.at(tick), bottom, grid, 1)
		d.text(x.at(tick), bottom+16, "middle", compact(tick))
	}
}

// plotScale draws acquires per second over the number of waiters on one lock.
func plotScale(list []*summary) string {
	const height, top, bottom, right = 420, 60, 370, 780
	d := newDrawing(plotWidth, height, "scale: acquires per second over waiters on one lock (more is better)")
	var sizes, rates []float64
	for _, n := range queueSizes {
		sizes = append(sizes, float64(n))
		for _, s := range list {
			rates = append(rates, s.extra[queueKey(n)])
		}
	}
	x, y := axisOver(leftFrom, right, sizes...), axisOver(bottom, top, rates...)
	d.columns(x, top, bottom, "")
	d.text((leftFrom+right)/2, bottom+36, "middle", "waiters")
	for _, tick := range y.ticks() {
		d.line(leftFrom, y.at(tick), right, y.at(tick), grid, 1)
		d.text(leftFrom-8, y.at(tick)+4, "end", compact(tick))
	}
	lastLabel := math.Inf(1)
	for _, s := range byLastPoint(list) {
		lastLabel = d.curve(s, x, y, lastLabel)
	}
	return d.end()
}

// curve draws the points of a peer, and its name after the last one, above the label that was drawn before. It returns the
// height of the label.
func (d *drawing) curve(s *summary, x, y axis, lastLabel float64) float64 {
	colour, oldX, oldY := colourOf(s.peer), 0.0, 0.0
	for i, n := range queueSizes {
		rate, ok := s.extra[queueKey(n)]
		if !ok {
			break
		}
		px, py := x.at(float64(n)), y.at(rate)
		if i > 0 {
			d.line(oldX, oldY, px, py, colour, 2)
		}
		d.dot(px, py, colour)
		oldX, oldY = px, py
	}
	label := min(oldY+4, lastLabel-14)
	d.text(oldX+10, label, "start", s.peer)
	return label
}

// byLastPoint orders from the bottom of the plot to its top.
func byLastPoint(list []*summary) []*summary {
	last := func(s *summary) (rate float64) {
		for _, n := range queueSizes {
			if r, ok := s.extra[queueKey(n)]; ok {
				rate = r
			}
		}
		return rate
	}
	return slices.SortedFunc(slices.Values(list), func(a, b *summary) int { return cmp.Compare(last(a), last(b)) })
}
