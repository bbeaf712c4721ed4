package zkbridge

// callRequest is a request of a goroutine that waits for the result.
type callRequest interface {
	request
	forEpoch() uint64
	start(ep *epoch)
}

// call is the part that all calls have.
type call[T any] struct {
	epoch uint64
	done  chan result[T] // has room for the result: the actor does not wait
}

type result[T any] struct {
	value T
	err   error
}

func newCall[T any](epoch uint64) call[T] { return call[T]{epoch, make(chan result[T], 1)} }

func (c *call[T]) forEpoch() uint64 { return c.epoch }

func (c *call[T]) deliver(value T, err error) { c.done <- result[T]{value, err} }

// withdraw drops a request whose caller has stopped waiting.
func (b *Bridge) withdraw(r request) {
	b.ref.Tell(task(func(a *bridgeActor) {
		if a.epoch != nil {
			a.epoch.close(r)
		}
	}))
}
