package zktest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// expireSession ends a session: it resumes the session with its id and password, and closes it. The
// server disconnects the session's own client then, which may reconnect before the close, so that
// expireSession repeats both until the server does not know the session.
func expireSession(addrs []string, id int64) error {
	deadline, existed := time.Now().Add(TimeLimit), false
	for time.Now().Before(deadline) {
		known, err := closeSession(addrs[0], id)
		switch {
		case err != nil && len(addrs) > 1:
			addrs = addrs[1:] // the member may be down
		case err != nil:
			return err
		case !known && !existed:
			return errors.New("there is no such session")
		case !known:
			return nil
		}
		existed = existed || known
	}
	return errors.New("it does not end")
}

// closeSession resumes the session and closes it, by one write, and reports whether the server knew
// it.
func closeSession(addr string, id int64) (known bool, err error) {
	conn, err := net.DialTimeout("tcp", addr, TimeLimit)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(TimeLimit)); err != nil {
		return false, err
	}
	resume := connectRequest(id, password(id), 10*time.Second)
	if _, err := conn.Write(append(resume, closeRequest()...)); err != nil {
		return false, err
	}
	var reply struct {
		Length, Protocol, Timeout int32
		Session                   int64
	}
	switch err := binary.Read(conn, binary.BigEndian, &reply); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return true, nil // the client has reconnected before the answer: the caller tries again
	case err != nil:
		return false, err
	}
	// The server closes the connection when the session is closed, and also when the client
	// reconnects: the caller tries again.
	_, _ = io.Copy(io.Discard, conn)
	return reply.Session != 0, nil
}

// connectRequest is the first message of a connection.
func connectRequest(session int64, passwd []byte, timeout time.Duration) []byte {
	const protocol, lastZxid = int32(0), int64(0)
	return frame(protocol, lastZxid, int32(timeout.Milliseconds()), session, int32(len(passwd)), passwd, false)
}

// closeRequest is the message that ends a session.
func closeRequest() []byte {
	const xid, opClose = int32(1), int32(-11)
	return frame(xid, opClose)
}

// frame encodes the fields as ZooKeeper does, with their length before them.
func frame(fields ...any) []byte {
	b := make([]byte, 4)
	for _, field := range fields {
		b, _ = binary.Append(b, binary.BigEndian, field) // fails only for types of no fixed size
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// password computes a session's password as the server does: 16 bytes of java.util.Random, seeded
// with the session id and a constant that has never changed.
func password(session int64) []byte {
	const secret, multiplier, increment, mask = 0xB3415C00, 0x5DEECE66D, 0xB, 1<<48 - 1
	seed := (uint64(session) ^ secret ^ multiplier) & mask
	var b []byte
	for range 4 {
		seed = (seed*multiplier + increment) & mask
		b = binary.LittleEndian.AppendUint32(b, uint32(seed>>16))
	}
	return b
}
