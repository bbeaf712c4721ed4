package remote

import (
	"runtime"
	"sync"
)

// frames sends the frames of one stream in order, in a goroutine of its own: a stream blocks while
// the other end does not read.
type frames[F any] struct {
	send func(F) error

	mu      sync.Mutex
	queue   []F
	wake    chan struct{} // has room for one
	closed  bool
	blocked func() // called once, when there is room again; nil if no caller waits for that
}

// maxQueuedFrames is how many frames may wait before hasRoom returns false. With one, what comes
// while a frame is sent goes by the next, all of it: with four, a busy stream needed 7 % more
// processor time.
const maxQueuedFrames = 1

// writable is the message to an actor that there is room for frames.
type writable struct{}

// yield lets other goroutines run. A simulation has it do something else: Go does not run goroutines
// that have yielded in the same order each time.
var yield = runtime.Gosched

// newFrames starts the goroutine. It ends after close, or when send fails; then it calls ended.
func newFrames[F any](send func(F) error, ended func(error)) *frames[F] {
	f := &frames[F]{send: send, wake: make(chan struct{}, 1)}
	go func() { ended(f.run()) }()
	return f
}

// hasRoom reports whether numbered messages may be put. Otherwise it has f called when there is
// room.
func (f *frames[F]) hasRoom(again func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) < maxQueuedFrames {
		return true
	}
	f.blocked = again
	return false
}

// extend has add put more into the last frame that waits. It returns false if none waits, or if add
// returns false.
func (f *frames[F]) extend(add func(last F) bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue) > 0 && add(f.queue[len(f.queue)-1])
}

// waiting returns how many frames wait.
func (f *frames[F]) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.queue)
}

// put queues a frame. It never blocks.
func (f *frames[F]) put(frame F) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.queue = append(f.queue, frame)
		f.notify()
	}
}

// close ends the goroutine behind the frames that are queued.
func (f *frames[F]) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.notify()
}

func (f *frames[F]) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *frames[F]) run() error {
	for {
		yield() // those that are about to put more have it go by the same frame
		f.mu.Lock()
		queue, closed := f.queue, f.closed
		f.queue = nil
		blocked := f.blocked
		f.blocked = nil
		f.mu.Unlock()
		if blocked != nil {
			blocked()
		}
		for _, frame := range queue {
			if err := f.send(frame); err != nil {
				return err
			}
		}
		if len(queue) > 0 {
			continue
		}
		if closed {
			return nil
		}
		<-f.wake
	}
}
