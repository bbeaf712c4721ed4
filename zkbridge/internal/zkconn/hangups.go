package zkconn

import (
	"errors"
	"fmt"
	"time"
)

// HangUps counts how often servers may have hung up on a request: it was the one that the server had to
// answer next, or the largest one. A request that each server hangs up on, as one that is larger than the server's
// jute.maxbuffer, would otherwise end one connection after the other. The zero value is none.
type HangUps int8

// maxRequestHangUps is how often servers hang up on a request before it fails. With the pauses that takes
// a quarter of a minute: a network or an ensemble that fails again and again may hit a request a few
// times in a row.
const maxRequestHangUps = 8

var errHangsUp = fmt.Errorf("the server has ended the connection %d times when it had this request to answer: "+
	"the request may be larger than the server's jute.maxbuffer", maxRequestHangUps)

// IsHangUp reports whether a request has failed with err because a server hung up on it.
func IsHangUp(err error) bool { return errors.Is(err, errHungUp) || errors.Is(err, errHangsUp) }

// Note counts the error of an attempt, if it is a hang-up, and returns why there is to be no further
// attempt, or nil.
func (h *HangUps) Note(err error) error {
	if IsHangUp(err) && *h < maxRequestHangUps {
		*h++
	}
	return h.Final()
}

// Final returns why there is to be no further attempt, or nil.
func (h HangUps) Final() error {
	if h >= maxRequestHangUps {
		return errHangsUp
	}
	return nil
}

// Pause returns how long to wait before the next attempt: not at all after the first hang-up, then a
// quarter of a second, and after each further one twice as long.
func (h HangUps) Pause() time.Duration {
	if h < 2 {
		return 0
	}
	return time.Second / 8 << (h - 1)
}
