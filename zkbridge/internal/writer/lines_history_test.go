package writer

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
)

// In random histories of atomic creates in few directories, of which transactions are executed, refused
// because a directory is missing, not executed or of unknown outcome, every create is sent in the end: no
// two of them wait for each other in the lines of their directories.
func TestLinesEnd(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := newLines(t)
		h := &linesHistory{lines: l, ended: map[*Group]bool{}}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			switch rapid.IntRange(0, 3).Draw(r, "what") {
			case 0:
				h.createIn(rapid.SliceOfNDistinct(rapid.IntRange(1, 4), 1, 3, rapid.ID).Draw(r, "directories"))
			case 1:
				h.resubmit()
			case 2:
				h.send()
			default:
				if len(h.sent) > 0 {
					i := rapid.IntRange(0, len(h.sent)-1).Draw(r, "batch")
					h.answer(i, rapid.IntRange(0, 3).Draw(r, "answer"))
				}
			}
		}
		h.end()
		for i, g := range h.all {
			if !h.ended[g] {
				r.Fatalf("create %d of %d is never sent", i, len(h.all))
			}
		}
	})
}

// The lines of directories keep one order when creates are sent again that came before those under way: two
// atomic creates waited for each other for ever.
func TestLinesHaveOneOrder(t *testing.T) {
	h := &linesHistory{lines: newLines(t), ended: map[*Group]bool{}}
	h.createIn([]int{1})
	h.createIn([]int{1, 2})
	h.send()
	h.answer(0, outcomeUnknown)
	h.createIn([]int{1, 2})
	h.send()
	for _, g := range h.unknown { // the first one comes back while the third is under way, the second one behind that
		h.w.Create(g)
		if len(h.sent) > 0 {
			h.answer(0, notExecuted)
		}
	}
	h.unknown = nil
	h.end()
	if len(h.ended) != 3 {
		t.Errorf("%d of 3 creates are sent", len(h.ended))
	}
}

// linesHistory is the batches under way of a writer, and what has become of its groups.
type linesHistory struct {
	*lines
	all     []*Group
	sent    []*batch
	unknown []*Group // that are to be sent again
	ended   map[*Group]bool
}

func (h *linesHistory) createIn(directories []int) {
	var parts []*Create
	for _, d := range directories {
		parts = append(parts, NewCreate(reply.To{}, &messages.Create{Directory: fmt.Sprintf("/d%d", d), Prefix: "n-"}, nil))
	}
	g := NewAtomicCreate(parts)
	h.all = append(h.all, g)
	h.w.Create(g)
}

func (h *linesHistory) resubmit() {
	for _, g := range h.unknown {
		h.w.Create(g)
	}
	h.unknown = nil
}

// send takes a batch from the lines, and one from the queue.
func (h *linesHistory) send() {
	if b := h.w.buildNewBatch(); b != nil {
		h.sent = append(h.sent, b)
	}
	if b := h.w.buildBatch(); b != nil {
		h.w.inFlight.add(b)
		h.sent = append(h.sent, b)
	}
}

// end sends all that can be sent, and has it executed.
func (h *linesHistory) end() {
	for n := -1; n != len(h.ended); {
		n = len(h.ended)
		h.resubmit()
		for h.send(); len(h.sent) > 0; h.send() {
			h.answer(0, executed)
		}
	}
}

// The answers to a batch.
const (
	executed = iota
	directoryMissing
	notExecuted
	outcomeUnknown
)

func (h *linesHistory) answer(i, answer int) {
	b := h.sent[i]
	h.sent = append(h.sent[:i:i], h.sent[i+1:]...)
	h.w.inFlight.remove(b)
	switch answer {
	case executed:
		for _, g := range b.groups {
			h.ended[g] = true
		}
		h.w.onInUse(b)
	case directoryMissing:
		for _, g := range b.groups {
			g.tries = 0 // none is given up
		}
		h.missing(b)
	case notExecuted:
		h.w.sendAgain(b, nil)
	case outcomeUnknown:
		for _, g := range b.groups {
			h.w.leave(g)
			h.unknown = append(h.unknown, g)
		}
		h.w.makeReadyAgain(b)
	}
}
