package zkbridge

// callRequest is a request of a goroutine that waits for the result.
type callRequest interface {
	request
	forEpoch() uint64
	start(ep *epoch)
}

// withdraw drops a request whose caller has stopped waiting.
func (b *Bridge) withdraw(r request) {
	b.ref.Tell(task(func(a *bridgeActor) {
		if a.epoch != nil {
			a.epoch.close(r)
		}
	}))
}
