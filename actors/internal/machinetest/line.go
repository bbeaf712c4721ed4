package machinetest

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// Line is an event or an effect in a script: a word, arguments such as id=1, and flags such as try.
type Line struct {
	Word string
	t    *testing.T
	text string
	args map[string]string
}

func parse(t *testing.T, text string) Line {
	words := strings.Fields(text)
	l := Line{words[0], t, text, map[string]string{}}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		l.args[key] = value
	}
	return l
}

func (l Line) String() string { return l.text }

// Has reports whether the line has an argument or a flag.
func (l Line) Has(key string) bool {
	_, ok := l.args[key]
	return ok
}

// Text returns an argument, or "" if the line does not have it.
func (l Line) Text(key string) string { return l.args[key] }

// List returns the parts of an argument with commas, such as "1,2".
func (l Line) List(key string) []string {
	return strings.FieldsFunc(l.args[key], func(r rune) bool { return r == ',' })
}

// Number returns an argument that is a number, or otherwise if the line does not have it.
func (l Line) Number(key string, otherwise int64) int64 {
	if !l.Has(key) {
		return otherwise
	}
	n, err := strconv.ParseInt(l.args[key], 10, 64)
	if err != nil {
		l.t.Fatalf("%q: %v", l, err)
	}
	return n
}

// Unknown fails the test: the machine has no such event.
func (l Line) Unknown() { l.t.Fatalf("unknown event %q", l) }

func (l Line) ID() requests.ID { return requests.ID(l.Number("id", 0)) }

func (l Line) Serial() uint64 { return uint64(l.Number("serial", 0)) }

// Epoch returns the epoch, 1 if it is left out.
func (l Line) Epoch() uint64 { return uint64(l.Number("epoch", 1)) }

// Reason returns the reason, or otherwise if it is left out.
func (l Line) Reason(otherwise requests.Reason) requests.Reason {
	if !l.Has("reason") {
		return otherwise
	}
	for r := requests.Reason(1); r < 100; r++ {
		if r.String() == l.Text("reason") {
			return r
		}
	}
	l.t.Fatalf("%q: unknown reason", l)
	return 0
}

// Request returns the request of the event acquire, given the names of the kinds. The kind is the
// first if it is left out.
func (l Line) Request(kinds []string) requests.Incoming {
	kind := slices.Index(kinds, l.Text("kind"))
	if kind < 0 && l.Has("kind") {
		l.t.Fatalf("%q: the kinds are %q", l, kinds)
	}
	return requests.Incoming{ID: l.ID(), Owner: l.Text("owner"), Kind: queue.Kind(max(kind, 0)), Try: l.Has("try"),
		NotifyContended: l.Has("notify"), Revocable: l.Has("revocable"), Data: []byte(l.Text("data"))}
}
