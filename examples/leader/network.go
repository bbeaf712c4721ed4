//go:build unix

package main

import (
	"io"
	"net"
	"strings"
	"sync"
)

// network forwards the connections of one process to the servers. While it is cut, it loses all
// packets, and closes no connection, as a broken cable does.
type network struct {
	listener net.Listener
	servers  []string
	address  string // by which the process reaches the servers

	mu    sync.Mutex
	isCut bool
	next  int        // of the servers
	conns []net.Conn // of both sides
}

func newNetwork(servers string) (*network, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	hosts, chroot, below := strings.Cut(servers, "/")
	n := &network{listener: l, servers: strings.Split(hosts, ","), address: l.Addr().String()}
	if below {
		n.address += "/" + chroot
	}
	go n.accept()
	return n, nil
}

func (n *network) cut(is bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.isCut = is
	if !is { // packets were lost, so that the connections cannot go on
		n.closeLocked()
	}
}

func (n *network) close() {
	n.listener.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closeLocked()
}

func (n *network) closeLocked() {
	for _, c := range n.conns {
		c.Close()
	}
	n.conns = nil
}

func (n *network) accept() {
	for {
		client, err := n.listener.Accept()
		if err != nil {
			return
		}
		n.mu.Lock()
		n.conns = append(n.conns, client)
		isCut, server := n.isCut, n.servers[n.next%len(n.servers)]
		n.next++
		n.mu.Unlock()
		if !isCut {
			go n.serve(client, server)
		}
	}
}

func (n *network) serve(client net.Conn, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		client.Close()
		return
	}
	n.mu.Lock()
	n.conns = append(n.conns, server)
	n.mu.Unlock()
	go n.copy(client, server)
	n.copy(server, client)
}

// copy forwards packets in one direction.
func (n *network) copy(to, from net.Conn) {
	packet := make([]byte, 32<<10)
	for {
		size, err := from.Read(packet)
		n.mu.Lock()
		isCut := n.isCut
		n.mu.Unlock()
		if isCut {
			io.Copy(io.Discard, from)
			return
		}
		if _, failed := to.Write(packet[:size]); err != nil || failed != nil {
			to.Close()
			from.Close()
			return
		}
	}
}
