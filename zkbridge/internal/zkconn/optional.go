package zkconn

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"syscall"

	"github.com/go-zookeeper/zk"
)

// optionalRequest is a request that not every server knows. It remembers that servers hang up on
// it, as some do rather than say so.
type optionalRequest struct {
	hangups atomic.Int32 // in a row, in the session of epoch
	epoch   atomic.Uint64
	unknown atomic.Bool // do not send it any more
}

// MaxHangups is how many requests in a row may end their connection, in one session. Fewer
// may have other reasons: the end of the session, or a network that fails.
const MaxHangups = 4

// onResult takes the result of the request in an epoch. It reports whether the request is not
// to be sent any more because of that; it does so once.
func (o *optionalRequest) onResult(epoch uint64, err error) bool {
	if o.epoch.Swap(epoch) != epoch || err == nil {
		o.hangups.Store(0)
	}
	return errors.Is(err, errHungUp) && o.hangups.Add(1) >= MaxHangups && !o.unknown.Swap(true)
}

// errHungUp is told to the request that a server had to answer next as it ended the
// connection.
var errHungUp = fmt.Errorf("%w by the server, which had this request to answer", zk.ErrConnectionClosed)

// isHangUp reports whether reading a connection has failed with err because the server
// ended it.
func isHangUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// IsUnknown reports whether servers are taken not to know the request.
func (o *optionalRequest) IsUnknown() bool { return o.unknown.Load() }
