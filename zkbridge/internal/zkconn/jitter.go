package zkconn

import (
	"crypto/rand"
	"encoding/binary"
	mathrand "math/rand/v2"
	"time"
)

// Jitter returns random durations, so that many clients do not act at one time. The seed comes from
// crypto/rand, which testing/cryptotest makes repeatable. Only one goroutine may use it at a time.
type Jitter struct{ source *mathrand.PCG }

func NewJitter() Jitter {
	var seed [16]byte
	rand.Read(seed[:])
	return Jitter{mathrand.NewPCG(binary.BigEndian.Uint64(seed[:8]), binary.BigEndian.Uint64(seed[8:]))}
}

// Below returns a duration from 0 to below d.
func (s Jitter) Below(d time.Duration) time.Duration {
	return time.Duration(mathrand.New(s.source).Int64N(int64(d)))
}
