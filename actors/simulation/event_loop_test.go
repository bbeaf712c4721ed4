package simulation

import (
	"container/heap"
	"fmt"
	"hash/fnv"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing/synctest"
	"time"
)

// eventLoop owns the order of events. Deliveries, operations and faults happen one at a time, each
// at a time of its own. All goroutines are idle before the next event.
type eventLoop struct {
	start   time.Time
	stateMu sync.Mutex // held during an event, and by every other goroutine that uses the state of the simulation
	onIdle  func()     // called when all goroutines are idle after an event

	mu        sync.Mutex
	events    eventHeap
	serial    uint64
	usedTimes map[time.Duration]bool
	wake      chan struct{}
	history   []string
	hash      uint64
	steps     int

	eventBegan       int64 // when the present event began, by the real clock
	eventLine        int   // how many lines the history had then
	certainLines     int   // how many it had when the first event began of interruptedLines
	interruptedLines []int // lines before which an event took so long that Go may have preempted a goroutine
}

type event struct {
	at     time.Duration
	serial uint64
	do     func()
}

type eventHeap []event

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].serial < h[j].serial
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func newEventLoop() *eventLoop {
	return &eventLoop{start: time.Now(), wake: make(chan struct{}, 1), hash: 14695981039346656037, usedTimes: map[time.Duration]bool{}}
}

// now returns the time since the start.
func (loop *eventLoop) now() time.Duration { return time.Since(loop.start) }

func (loop *eventLoop) after(delay time.Duration, do func()) { loop.at(loop.now()+delay, do) }

// at calls do at a time. No two events have the same time: timers that they set would fire in a
// random order.
func (loop *eventLoop) at(at time.Duration, do func()) {
	loop.mu.Lock()
	for loop.usedTimes[at] {
		at++
	}
	loop.usedTimes[at] = true
	loop.serial++
	heap.Push(&loop.events, event{at, loop.serial, do})
	first := loop.events[0].serial == loop.serial
	loop.mu.Unlock()
	if first {
		select {
		case loop.wake <- struct{}{}:
		default:
		}
	}
}

// run performs events until end, or until done reports true.
func (loop *eventLoop) run(end time.Duration, done func() bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		synctest.Wait()
		runtime.Gosched() // begins a time slice: goroutines that wake one another share one slice over many events
		if loop.finishEvent(done) {
			return
		}
		loop.mu.Lock()
		next := end
		if len(loop.events) > 0 {
			next = min(next, loop.events[0].at)
		}
		loop.mu.Unlock()
		if wait := next - loop.now(); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-loop.wake:
				timer.Stop()
			}
			continue
		}
		if loop.now() >= end {
			return
		}
		loop.mu.Lock()
		e := heap.Pop(&loop.events).(event)
		delete(loop.usedTimes, e.at)
		loop.steps++
		loop.mu.Unlock()
		loop.withState(e.do)
	}
}

// finishEvent runs the checks that follow an event, and reports whether the loop is done.
func (loop *eventLoop) finishEvent(done func() bool) bool {
	loop.stateMu.Lock()
	defer loop.stateMu.Unlock()
	loop.onIdle()
	loop.noteInterruption()
	return done != nil && done()
}

// withState calls f while no event happens. f must not block.
func (loop *eventLoop) withState(f func()) {
	loop.stateMu.Lock()
	defer loop.stateMu.Unlock()
	f()
}

// longEvent is a little less than the 10 ms after which Go preempts a goroutine.
const longEvent = 8 * time.Millisecond

// noteInterruption notes an event that took too long by the real clock, which the bubble hides.
func (loop *eventLoop) noteInterruption() {
	var tv syscall.Timeval
	syscall.Gettimeofday(&tv)
	now := tv.Nano()
	loop.mu.Lock()
	defer loop.mu.Unlock()
	if loop.eventBegan != 0 && now-loop.eventBegan > int64(longEvent) {
		if len(loop.interruptedLines) == 0 {
			loop.certainLines = loop.eventLine
		}
		loop.interruptedLines = append(loop.interruptedLines, len(loop.history)+1)
	}
	loop.eventBegan, loop.eventLine = now, len(loop.history)
}

// certain returns the number of lines that no interruption can have changed.
func (loop *eventLoop) certain() int {
	if len(loop.interruptedLines) == 0 {
		return len(loop.history)
	}
	return loop.certainLines
}

// record adds a line to the history.
func (loop *eventLoop) record(format string, args ...any) {
	text := fmt.Sprintf("%v ", loop.now()) + fmt.Sprintf(format, args...)
	loop.mu.Lock()
	defer loop.mu.Unlock()
	loop.appendLine(strings.ReplaceAll(text, "\n", `\n`)) // joined errors have several lines
}

// appendLine adds a line to the history. The caller holds mu.
func (loop *eventLoop) appendLine(text string) {
	loop.history = append(loop.history, text)
	for _, c := range []byte(text) {
		loop.hash = (loop.hash ^ uint64(c)) * 1099511628211
	}
}

func (loop *eventLoop) text() string { return strings.Join(loop.history, "\n") }

func hash(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}
