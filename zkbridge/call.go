package zkbridge

// callRequest is a request of a goroutine that waits for it, and not of an actor.
type callRequest interface {
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

// withdraw drops a request whose caller waits no longer.
func (b *Bridge) withdraw(r request) {
	b.ref.Tell(task(func(c *bridgeActor) {
		if c.epoch != nil {
			delete(c.epoch.open, r)
		}
	}))
}
