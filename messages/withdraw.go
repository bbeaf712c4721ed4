package messages

// Withdrawal implements ask.Withdrawer. It returns the Cancel of this request. LockRef.Acquire
// sends it when its future is cancelled or dropped before Result has returned the grant.
func (m *Acquire) Withdrawal() any {
	return &Cancel{RequestId: m.GetRequestId(), Owner: m.GetOwner()}
}
