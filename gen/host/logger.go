package host

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// The limits of a logger of BoundLogger.
const (
	maxLogDelay   = 100 * time.Millisecond
	maxLogWaiting = 1000    // records
	maxLogText    = 4 << 10 // bytes of one value
)

// BoundLogger returns a logger for actors, which must not block. It passes each record to logger in
// another goroutine, and waits for that: for 100 ms at most, and not at all while an earlier record
// is not passed after that time. Up to 1,000 records then wait for logger. Later records are
// dropped, which the log says once logger goes on. A text of more than 4 KiB, and any other value
// whose text is longer, is cut. A nil logger discards the log.
func BoundLogger(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	if _, bound := logger.Handler().(boundHandler); bound {
		return logger
	}
	return slog.New(boundHandler{logger.Handler(), &recordQueue{}})
}

// boundHandler is the handler of BoundLogger.
type boundHandler struct {
	to    slog.Handler
	queue *recordQueue
}

// Enabled implements slog.Handler.
func (h boundHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.to.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h boundHandler) Handle(ctx context.Context, r slog.Record) error {
	short := slog.NewRecord(r.Time, r.Level, cutText(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		short.AddAttrs(cutAttr(a))
		return true
	})
	h.queue.pass(logRecord{h.to, ctx, short, make(chan struct{})})
	return nil
}

// WithAttrs implements slog.Handler.
func (h boundHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return boundHandler{h.to.WithAttrs(cutAttrs(attrs)), h.queue}
}

// WithGroup implements slog.Handler.
func (h boundHandler) WithGroup(name string) slog.Handler {
	return boundHandler{h.to.WithGroup(name), h.queue}
}

// logRecord is a record on its way to a handler.
type logRecord struct {
	to     slog.Handler
	ctx    context.Context
	record slog.Record
	passed chan struct{} // closed when the handler has returned
}

// recordQueue passes records to their handlers, one after the other. It has a goroutine as long as
// it has records.
type recordQueue struct {
	mu      sync.Mutex
	waiting []logRecord // the handler of the first one runs
	blocked bool        // the handler has run for maxLogDelay
	dropped int         // records that the log does not report yet
}

// pass queues a record, and waits for its handler unless an earlier record is blocked.
func (q *recordQueue) pass(r logRecord) {
	if !q.add(r) {
		return
	}
	limit := time.NewTimer(maxLogDelay)
	defer limit.Stop()
	select {
	case <-r.passed:
	case <-limit.C:
		q.mu.Lock()
		defer q.mu.Unlock()
		q.blocked = len(q.waiting) > 0
	}
}

// AwaitLog waits until a logger of BoundLogger has passed on all records so far, for the limit at
// most. A program calls it before it exits, so that its last words are not lost. It returns at once
// for another logger.
func AwaitLog(logger *slog.Logger, limit time.Duration) {
	h, bound := logger.Handler().(boundHandler)
	if !bound {
		return
	}
	select {
	case <-h.queue.lastPassed():
	case <-time.After(limit):
	}
}

// lastPassed returns a channel that is closed when no record of now waits any more.
func (q *recordQueue) lastPassed() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := len(q.waiting); n > 0 {
		return q.waiting[n-1].passed
	}
	none := make(chan struct{})
	close(none)
	return none
}

// add reports whether the caller should wait for the record.
func (q *recordQueue) add(r logRecord) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == maxLogWaiting {
		q.dropped++
		return false
	}
	q.waiting = append(q.waiting, r)
	if len(q.waiting) == 1 {
		go q.passAll()
	}
	return !q.blocked
}

// passAll passes the records until none is left.
func (q *recordQueue) passAll() {
	for more := true; more; {
		r, dropped := q.first()
		failed := panics(func() {
			r.to.Handle(r.ctx, r.record) // slog.Logger ignores the error, too
			if log := slog.New(r.to); dropped > 0 {
				log.Warn("lines of the log are dropped, because the logger blocked or panicked", "lines", dropped,
					"do", "let the output of the log be read at once")
			}
		})
		if failed {
			dropped++
		} else {
			dropped = 0
		}
		more = q.removeFirst(dropped)
		close(r.passed)
	}
}

// first returns the first record, and how many to report as dropped behind it: behind the last one
// that waits.
func (q *recordQueue) first() (r logRecord, dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 1 {
		dropped, q.dropped = q.dropped, 0
	}
	return q.waiting[0], dropped
}

// removeFirst removes the first record, and reports whether there are more. dropped are still to
// report.
func (q *recordQueue) removeFirst(dropped int) (more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = q.waiting[1:]
	q.blocked = false
	q.dropped += dropped
	return len(q.waiting) > 0
}

func panics(f func()) (failed bool) {
	defer func() { failed = recover() != nil }()
	f()
	return false
}

func cutAttrs(attrs []slog.Attr) []slog.Attr {
	short := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		short[i] = cutAttr(a)
	}
	return short
}

// cutAttr cuts the value of an attribute, or each value of a group.
func cutAttr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindGroup:
		a.Value = slog.GroupValue(cutAttrs(a.Value.Group())...)
	case slog.KindString:
		a.Value = slog.StringValue(cutText(a.Value.String()))
	case slog.KindAny:
		if text := fmt.Sprint(a.Value.Any()); len(text) > maxLogText {
			a.Value = slog.StringValue(cutText(text))
		}
	}
	return a
}

// cutText cuts a text that is too long, and says how long it was.
func cutText(text string) string {
	if len(text) <= maxLogText {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxLogText], ""), len(text))
}
