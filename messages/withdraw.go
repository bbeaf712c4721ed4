package messages

// Withdrawal returns the Cancel that withdraws the request. It implements ask.Withdrawer,
// so that Cancel on the future of LockRef.Acquire leaves the queue, or gives back a grant
// that Result has not returned yet.
func (m *Acquire) Withdrawal() any {
	return &Cancel{RequestId: m.GetRequestId(), Owner: m.GetOwner()}
}
