package main

import (
	"net"
	"sync"
)

// gate is a proxy between a member and its server, which bench can cut: it then loses all bytes, but keeps the connections open.
// Members and servers learn of a cut by their own timeouts, as they do of a broken cable.
type gate struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	isCut bool
	conns map[net.Conn]bool
}

func openGate(server string) (*gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &gate{listener: l, server: server, conns: map[net.Conn]bool{}}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go g.serve(client)
		}
	}()
	return g, nil
}

func (g *gate) addr() string { return g.listener.Addr().String() }

func (g *gate) serve(client net.Conn) {
	g.keep(client)
	if g.cutNow() {
		return // connected, and without an answer
	}
	server, err := net.Dial("tcp", g.server)
	if err != nil {
		client.Close()
		return
	}
	g.keep(server)
	go g.pass(client, server)
	g.pass(server, client)
}

// pass writes what it reads, unless the gate is cut. A cut connection stays open, so that no end learns of the cut.
func (g *gate) pass(from, to net.Conn) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err == nil && !g.cutNow() {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			break
		}
	}
	if !g.cutNow() {
		from.Close()
		to.Close()
	}
}

func (g *gate) keep(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns[c] = true
}

func (g *gate) cutNow() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isCut
}

func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isCut = true
}

// heal ends the cut. Connections that lost bytes are closed, so that both ends connect again.
func (g *gate) heal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isCut = false
	for c := range g.conns {
		c.Close()
	}
	clear(g.conns)
}

func (g *gate) close() {
	g.listener.Close()
	g.heal()
}
