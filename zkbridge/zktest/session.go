package zktest

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// expireSession ends a session: it takes it over with its id and password and closes it. The session's own client
// is cut off by that and may come back in between, so it is done until the server knows the session no more.
func expireSession(addrs []string, id int64) error {
	deadline, was := time.Now().Add(clientTimeout), false
	for time.Now().Before(deadline) {
		known, err := closeSession(addrs[0], id)
		switch {
		case err != nil && len(addrs) > 1:
			addrs = addrs[1:] // a member that is down, perhaps
		case err != nil:
			return err
		case !known && !was:
			return errors.New("there is no such session")
		case !known:
			return nil
		}
		was = was || known
	}
	return errors.New("it lives on")
}

// closeSession asks to resume the session and to close it, in one write, and reports whether the server knew it.
func closeSession(addr string, id int64) (known bool, err error) {
	conn, err := net.DialTimeout("tcp", addr, clientTimeout)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(clientTimeout)); err != nil {
		return false, err
	}
	const opClose = -11
	resume := connectRequest(id, password(id))
	if _, err := conn.Write(append(resume, frame(int32(1), int32(opClose))...)); err != nil {
		return false, err
	}
	var reply struct {
		Length, Protocol, Timeout int32
		Session                   int64
	}
	switch err := binary.Read(conn, binary.BigEndian, &reply); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return true, nil // the client has come back before the answer: ask again
	case err != nil:
		return false, err
	}
	// The server closes the connection once the session is closed. That the client coming back closes it, too,
	// is noticed by asking again.
	_, _ = io.Copy(io.Discard, conn)
	return reply.Session != 0, nil
}

// connectRequest is the first message of a connection.
func connectRequest(session int64, passwd []byte) []byte {
	const protocol, lastZxid, timeout = int32(0), int64(0), int32(10_000)
	return frame(protocol, lastZxid, timeout, session, int32(len(passwd)), passwd, false)
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

// password computes a session's password as the server does: 16 bytes of java.util.Random, seeded with the session
// id and a constant that has never changed.
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
