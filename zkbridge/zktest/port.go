package zktest

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// reservedPort is a loopback port that no other process of these tests chooses until release. A
// server has it while it runs. The reservation is for the time before its start and while it is
// stopped, when a test waits for its return on the same port.
type reservedPort struct {
	number int
	free   func() // nil in the zero value
}

// reservePort chooses a port without a socket. It avoids the ports that systems choose for outgoing
// connections: a client that dials a stopped server there again could be connected to itself.
func reservePort() reservedPort {
	for {
		number := 10000 + rand.IntN(20000)
		if free, ok := reserve(number); ok {
			return reservedPort{number, free}
		}
	}
}

// release ends the reservation. It does nothing for the zero value.
func (p reservedPort) release() {
	if p.free != nil {
		p.free()
	}
}

func (p reservedPort) addr() string { return loopback(p.number) }

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
