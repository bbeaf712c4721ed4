package remote

import (
	"sync"
	"time"

	"github.com/actorlock/actorlock/messages"
)

// serverStream is a stream of a client.
type serverStream struct {
	frames  *frames[*messages.ServerFrame]
	done    chan struct{} // closed when nothing more is sent
	failed  error         // of the last Send, once done is closed: without it the client would take the end for the answer to its Bye
	cut     chan struct{} // closed to end the stream though the client does not read
	cutOnce sync.Once     // closes cut
	room    chan struct{} // for frames that are not handled yet
}

// cutOff ends the stream at once.
func (s *serverStream) cutOff() {
	s.frames.close()
	s.cutOnce.Do(func() { close(s.cut) })
}

// close ends the stream behind the frames that are queued. A client may not read them: after a time
// the stream ends without.
func (s *serverStream) close() {
	s.frames.close()
	time.AfterFunc(handshakeLimit, s.cutOff)
}

// end tells the client that its lease has ended, and ends the stream.
func (s *serverStream) end(reason messages.Reason, detail string) {
	s.frames.put(&messages.ServerFrame{Ended: &messages.Ended{Reason: reason, Detail: readable(detail)}})
	s.close()
}
