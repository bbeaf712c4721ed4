package zkbridge

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/actorlock/actorlock/messages"
)

// ReadLimit bounds how many directories a program reads at once for one of its clients, and how many bytes of
// each. Children and WatchChildren heed the one in their context (see In). Several goroutines may use
// one ReadLimit.
type ReadLimit struct {
	slots    chan struct{}
	bytes    int64
	exceeded func()
}

// NewReadLimit returns a ReadLimit for so many directories at one time, at least 1, with so many bytes of
// data and names each. It calls exceeded, unless that is nil, once for each read of a directory that has
// more, on any goroutine.
func NewReadLimit(directories, bytes int, exceeded func()) *ReadLimit {
	if exceeded == nil {
		exceeded = func() {}
	}
	return &ReadLimit{slots: make(chan struct{}, max(1, directories)), bytes: int64(bytes), exceeded: exceeded}
}

// readLimitKey is the key of a ReadLimit in a context.
type readLimitKey struct{}

// In returns a context with the limit. Children and WatchChildren wait with it while as many
// directories are read as may be, and fail with messages.Reason_LIMIT_EXCEEDED for one that has too many
// bytes.
func (l *ReadLimit) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, readLimitKey{}, l)
}

// begin waits until another directory may be read. The caller calls end when it is.
func (l *ReadLimit) begin(ctx context.Context) (end func(), err error) {
	if l == nil {
		return func() {}, nil
	}
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// nodeBytes is what a node costs that was read, beside its name and its data.
const nodeBytes = 128

// count returns a function that counts nodes of a directory, by what was read of them. Its error is that
// they are too many.
func (l *ReadLimit) count(directory string) func(nodes, bytes int) error {
	if l == nil {
		return func(int, int) error { return nil }
	}
	var sum atomic.Int64
	return func(nodes, bytes int) error {
		more := int64(nodes*nodeBytes + bytes)
		now := sum.Add(more)
		if now <= l.bytes {
			return nil
		}
		if now-more <= l.bytes {
			l.exceeded()
		}
		return fmt.Errorf("%w: the nodes in %s have more than the %d bytes that are read for one question", messages.Reason_LIMIT_EXCEEDED, directory, l.bytes)
	}
}

// readLimitOf returns the limit of a context, or nil.
func readLimitOf(ctx context.Context) *ReadLimit {
	l, _ := ctx.Value(readLimitKey{}).(*ReadLimit)
	return l
}
