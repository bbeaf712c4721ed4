package locktest

import (
	"encoding/binary"
	"sync"

	"github.com/actorlock/actorlock/zkbridge/embedded"
)

// Answer is a message of a server on its way to a client, without its length.
type Answer struct {
	Op      embedded.Op // of the request; OpAny for an event of a watch
	Request []byte      // without its length; nil for an event
	Message []byte
}

// tamper passes the answers of one connection through OnAnswer.
type tamper struct {
	change func(Answer) [][]byte

	mu    sync.Mutex
	sent  [][]byte // requests that are not answered
	began bool     // the connect request was sent

	// These belong to the reader.
	in, out   []byte
	connected bool
}

const (
	xidEvent = -1
	xidBytes = 4
)

// note takes down the requests of one write.
func (t *tamper) note(written []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(written) >= 12 {
		size := min(len(written), 4+int(binary.BigEndian.Uint32(written)))
		if t.began {
			t.sent = append(t.sent, append([]byte(nil), written[4:size]...))
		}
		t.began, written = true, written[size:]
	}
}

// requestOf returns the oldest request with the xid of an answer, and forgets it.
func (t *tamper) requestOf(message []byte) []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, request := range t.sent {
		if string(request[:xidBytes]) == string(message[:xidBytes]) {
			t.sent = append(t.sent[:i], t.sent[i+1:]...)
			return request
		}
	}
	return nil
}

// read reads from the server until there is something for the client.
func (t *tamper) read(from func([]byte) (int, error), b []byte) (int, error) {
	for len(t.out) == 0 {
		buffer := make([]byte, 4<<10)
		n, err := from(buffer)
		if t.in = append(t.in, buffer[:n]...); err != nil {
			return 0, err
		}
		for len(t.in) >= 4 {
			size := int(binary.BigEndian.Uint32(t.in))
			if len(t.in) < 4+size {
				break
			}
			for _, message := range t.change(t.answer(t.in[4 : 4+size])) {
				t.out = append(binary.BigEndian.AppendUint32(t.out, uint32(len(message))), message...)
			}
			t.in = t.in[4+size:]
		}
	}
	n := copy(b, t.out)
	t.out = t.out[n:]
	return n, nil
}

func (t *tamper) answer(message []byte) Answer {
	a := Answer{Message: append([]byte(nil), message...)}
	switch {
	case !t.connected:
		t.connected, a.Op = true, embedded.OpConnect
	case int32(binary.BigEndian.Uint32(message)) != xidEvent:
		if a.Request = t.requestOf(message); len(a.Request) >= 8 {
			a.Op = embedded.Op(int32(binary.BigEndian.Uint32(a.Request[xidBytes:])))
		}
	}
	return a
}
