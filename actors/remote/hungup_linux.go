package remote

import (
	"encoding/binary"
	"net"
	"syscall"
)

// The states of a TCP connection that its peer has closed or reset, as Linux numbers them.
const (
	tcpClose     = 7
	tcpCloseWait = 8
)

// hungUp reports whether the peer has closed a connection. What it has sent before may be unread.
func hungUp(c net.Conn) (is bool) {
	s, can := c.(syscall.Conn)
	if !can {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		info, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO)
		if err != nil {
			return
		}
		var begin [4]byte // of struct tcp_info, whose first byte is the state
		binary.NativeEndian.PutUint32(begin[:], uint32(info))
		is = begin[0] == tcpClose || begin[0] == tcpCloseWait
	})
	return is
}
