package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// axis is a logarithmic scale from one power of ten to another, drawn between two coordinates.
type axis struct {
	from, to int // powers of ten
	a, b     float64
}

// axisOver returns an axis that shows all positive values.
func axisOver(a, b float64, values ...float64) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v > 0 && !math.IsInf(v, 0) {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		low, high = 1, 10 // nothing to show
	}
	from := int(math.Floor(math.Log10(low)))
	return axis{from, max(int(math.Ceil(math.Log10(high))), from+1), a, b}
}

// at returns the coordinate of a value. A value that is too small is at the beginning.
func (x axis) at(v float64) float64 {
	share := 0.0
	if v > 0 {
		share = (math.Log10(v) - float64(x.from)) / float64(x.to-x.from)
	}
	return x.a + min(max(share, 0), 1)*(x.b-x.a)
}

func (x axis) ticks() []float64 {
	var ticks []float64
	for p := x.from; p <= x.to; p++ {
		ticks = append(ticks, math.Pow10(p))
	}
	return ticks
}

// drawing is an SVG image under construction.
type drawing struct{ strings.Builder }

// Colours: of this library, of the others, of text and of grid lines.
const (
	ours  = "#1b6ca8"
	other = "#9aa5b1"
	ink   = "#222222"
	grid  = "#dddddd"
)

func newDrawing(width, height int, title string) *drawing {
	d := &drawing{}
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(d, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	d.text(16, 22, "start", title, `font-size="15" font-weight="bold"`)
	return d
}

func (d *drawing) line(x1, y1, x2, y2 float64, colour string, width float64) {
	fmt.Fprintf(d, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%.1f"/>`+"\n", x1, y1, x2, y2, colour, width)
}

func (d *drawing) rect(x, y, w, h float64, colour string) {
	fmt.Fprintf(d, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, w, h, colour)
}

func (d *drawing) dot(x, y float64, colour string) {
	fmt.Fprintf(d, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x, y, colour)
}

// text draws a text with its start, middle or end at x.
func (d *drawing) text(x, y float64, anchor, s string, attributes ...string) {
	fmt.Fprintf(d, `<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s" %s>%s</text>`+"\n", x, y, anchor, ink, strings.Join(attributes, " "), html.EscapeString(s))
}

func (d *drawing) end() string { return d.String() + "</svg>\n" }

// compact formats a power of ten for an axis.
func compact(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%gk", v/1e3)
	default:
		return fmt.Sprintf("%g", v)
	}
}

func colourOf(peer string) string {
	if p, _ := findPeer(peer); p.isActorlock() {
		return ours
	}
	return other
}
