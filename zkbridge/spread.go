package zkbridge

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// spread returns a random duration from 0 to below d, so that many clients do not act at
// one time. It draws from crypto/rand, which testing/cryptotest makes repeatable.
func spread(d time.Duration) time.Duration {
	var drawn [8]byte
	rand.Read(drawn[:])
	return time.Duration(binary.BigEndian.Uint64(drawn[:]) % uint64(d))
}
