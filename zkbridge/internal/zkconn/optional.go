package zkconn

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"

	"github.com/go-zookeeper/zk"
)

// optionalRequest is a request that not every server knows. It counts how often servers hang up on
// it, as some do instead of answering that they do not know it.
type optionalRequest struct {
	hangups atomic.Int32 // in a row, in the session of epoch
	epoch   atomic.Uint64
	unknown atomic.Bool // it is not sent any more
}

// MaxHangups is how many requests in a row may end their connection, in one session. Fewer
// may have other reasons: the end of the session, or a network that fails.
const MaxHangups = 4

// onResult notes the result of the request in an epoch. It returns true once, when the request must
// not be sent any more because of that result.
func (o *optionalRequest) onResult(epoch uint64, err error) bool {
	if o.epoch.Swap(epoch) != epoch || err == nil {
		o.hangups.Store(0)
	}
	unknown := errors.Is(err, errHungUp) && o.hangups.Add(1) >= MaxHangups ||
		errors.Is(err, ServerError(codeMarshalling)) || errors.Is(err, ServerError(CodeUnimplemented))
	return unknown && !o.unknown.Swap(true)
}

// errNoContainers is the error of a transaction that was refused because of its containers. It is
// sent again without them.
var errNoContainers = errors.New("the server does not know containers")

// errHungUp is the error of the request that the server had to answer next when it ended the
// connection.
var errHungUp = fmt.Errorf("%w by the server, which had this request to answer", zk.ErrConnectionClosed)

// isHangUp reports whether reading or writing a connection has failed with err because the server
// has ended it.
func isHangUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// IsUnknown reports whether the request must not be sent: servers do not know it.
func (o *optionalRequest) IsUnknown() bool { return o.unknown.Load() }
