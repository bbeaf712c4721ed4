package zkbridge

// caller is a request of a goroutine that waits for it, and not of an actor.
type caller interface {
	request
	forEpoch() uint64
	start(ep *epoch)
}

// call is what callers have in common.
type call[T any] struct {
	epoch uint64
	done  chan result[T] // has room: the bridge does not wait
}

type result[T any] struct {
	value T
	err   error
}

func newCall[T any](epoch uint64) call[T] { return call[T]{epoch, make(chan result[T], 1)} }

func (c *call[T]) forEpoch() uint64 { return c.epoch }

func (c *call[T]) deliver(value T, err error) { c.done <- result[T]{value, err} }

// forget drops a request whose caller waits no longer.
func (b *Bridge) forget(r request) {
	b.ref.Tell(task(func(c *core) {
		if c.ep != nil {
			delete(c.ep.open, r)
		}
	}))
}
