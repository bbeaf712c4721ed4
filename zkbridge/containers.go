package zkbridge

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"syscall"

	"github.com/go-zookeeper/zk"
)

// containers remembers whether servers hang up on requests to make a container, as such do
// that do not know the request. A bridge whose servers do so makes persistent nodes.
type containers struct {
	hangups atomic.Int32 // in a row
	refused atomic.Bool
}

// maxHangups is how many requests for a container in a row may end their connection. One
// may have other reasons.
const maxHangups = 2

// asked takes the result of a request to make a container.
func (k *containers) asked(err error, log *slog.Logger) {
	switch {
	case err == nil:
		k.hangups.Store(0)
	case errors.Is(err, errHungUp) && k.hangups.Add(1) >= maxHangups && !k.refused.Swap(true):
		log.Warn("the server hangs up on createContainer: directories are persistent nodes from now on, which stay when they are empty",
			"times", maxHangups)
	}
}

// errHungUp is told to the request that a server had to answer next as it ended the
// connection.
var errHungUp = fmt.Errorf("%w by the server, which had this request to answer", zk.ErrConnectionClosed)

// isHangUp reports whether reading a connection has failed with err because the server
// ended it.
func isHangUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}
