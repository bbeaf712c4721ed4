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

// driver owns the order of events: deliveries, operations and faults happen one at a time,
// each at a time of its own, and all goroutines are idle before the next.
type driver struct {
	start time.Time
	world sync.Mutex // held while an event happens, and by other goroutines that touch the world
	step  func()     // is called when all that an event has caused has happened

	mu      sync.Mutex
	events  eventHeap
	serial  uint64
	newest  map[time.Duration]bool
	wake    chan struct{}
	history []string
	sum     uint64
	steps   int

	began       int64 // the present event, by the real clock
	interrupted []int // the lines before which an event took so long that Go may have taken the processor from a goroutine
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

func newDriver() *driver {
	return &driver{start: time.Now(), wake: make(chan struct{}, 1), sum: 14695981039346656037, newest: map[time.Duration]bool{}}
}

// now is the time since the start.
func (d *driver) now() time.Duration { return time.Since(d.start) }

func (d *driver) after(delay time.Duration, do func()) { d.at(d.now()+delay, do) }

// at has do called at a time. No two events have one time: timers that they set would fire
// in a random order.
func (d *driver) at(at time.Duration, do func()) {
	d.mu.Lock()
	for d.newest[at] {
		at++
	}
	d.newest[at] = true
	d.serial++
	heap.Push(&d.events, event{at, d.serial, do})
	first := d.events[0].serial == d.serial
	d.mu.Unlock()
	if first {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

// run performs the events until end.
func (d *driver) run(end time.Duration, done func() bool) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		synctest.Wait()
		runtime.Gosched() // begins a time slice: goroutines that wake one another in a row share one, over many events
		if d.look(done) {
			return
		}
		d.mu.Lock()
		next := end
		if len(d.events) > 0 {
			next = min(next, d.events[0].at)
		}
		d.mu.Unlock()
		if wait := next - d.now(); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-d.wake:
				timer.Stop()
			}
			continue
		}
		if d.now() >= end {
			return
		}
		d.mu.Lock()
		e := heap.Pop(&d.events).(event)
		delete(d.newest, e.at)
		d.steps++
		d.mu.Unlock()
		d.locked(e.do)
	}
}

// look does what follows an event, and reports whether all is done.
func (d *driver) look(done func() bool) bool {
	d.world.Lock()
	defer d.world.Unlock()
	d.step()
	d.measure()
	return done != nil && done()
}

// locked is for other goroutines than the driver's, and for what is no event. f must not wait
// for anything.
func (d *driver) locked(f func()) {
	d.world.Lock()
	defer d.world.Unlock()
	f()
}

// tooLong is close to the 10 ms after which Go lets other goroutines run first.
const tooLong = 8 * time.Millisecond

// measure counts the events that took too long by the real clock, which the bubble hides.
func (d *driver) measure() {
	var tv syscall.Timeval
	syscall.Gettimeofday(&tv)
	now := tv.Nano()
	if d.began != 0 && now-d.began > int64(tooLong) {
		d.mu.Lock()
		d.interrupted = append(d.interrupted, len(d.history)+1)
		d.mu.Unlock()
	}
	d.began = now
}

// line adds a line to the history.
func (d *driver) line(format string, args ...any) {
	text := fmt.Sprintf("%v ", d.now()) + fmt.Sprintf(format, args...)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(strings.ReplaceAll(text, "\n", `\n`)) // joined errors have several lines
}

// add adds a line. It needs the lock.
func (d *driver) add(text string) {
	d.history = append(d.history, text)
	for _, c := range []byte(text) {
		d.sum = (d.sum ^ uint64(c)) * 1099511628211
	}
}

func (d *driver) text() string { return strings.Join(d.history, "\n") }

func hash(b []byte) uint64 {
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}
