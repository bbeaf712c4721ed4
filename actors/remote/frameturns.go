package remote

import "runtime"

// frameTurns has the server read, and handle, the large frames of all clients in turn: otherwise as many
// processors as there are would each be busy with the frame of a client, for 10 ms until Go preempts it,
// while what few messages of another client need waits in each of the goroutines that it passes.
type frameTurns chan struct{}

// newFrameTurns returns the turns for half of the processors.
func newFrameTurns() frameTurns { return make(frameTurns, max(1, runtime.GOMAXPROCS(0)/2)) }

// A frame has no turn if it has fewer bytes, or messages.
const (
	smallFrameBytes    = 16 << 10
	smallFrameMessages = 64
)

// take blocks until there is a turn, and returns what ends it.
func (t frameTurns) take() (end func()) {
	t <- struct{}{}
	return func() { <-t }
}

// handle calls f, which must not block and handles so many messages of a frame, in a turn if they are many.
func (t frameTurns) handle(messages int, f func()) {
	if messages < smallFrameMessages {
		f()
		return
	}
	defer yield() // what few messages need goes on before the client's next ones
	defer t.take()()
	f()
}
