package main

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// gate checks the exclusion of one lock: holders enter and leave it. It lies in memory, or in a file that several
// processes have mapped. Java and Python have the same: the first three words of 64 bytes for each lock.
type gate struct {
	owner    atomic.Int64 // who is inside, 0: nobody
	last     atomic.Int64 // who has left last
	released atomic.Int64 // and when
	beside   atomic.Int64 // how many readers are inside, or holders of a permit
	_        [4]int64     // keeps locks that different clients use out of one cache line
}

const gateSize = int(unsafe.Sizeof(gate{}))

// enter reports whether nobody else is inside. me is not 0.
func (g *gate) enter(me int64) (alone bool) { return g.owner.Swap(me) == 0 }

// enterAs is enter for any of the recipes of access. What others of their kind may enter together is counted.
func (g *gate) enterAs(recipe string, me int64) (allowed bool) {
	switch recipe {
	case readSide:
		g.beside.Add(1)
		return g.owner.Load() == 0
	case writeSide:
		return g.enter(me) && g.beside.Load() == 0
	case semaphore:
		return g.beside.Add(1) <= permits
	}
	return g.enter(me)
}

func (g *gate) leaveAs(recipe string, me int64) {
	switch recipe {
	case readSide, semaphore:
		g.beside.Add(-1)
	default:
		g.leave(me)
	}
}

// leave must be called before the lock is released. Who came in by a violation stays inside.
func (g *gate) leave(me int64) { g.owner.CompareAndSwap(me, 0) }

// handOver is for who is about to leave a lock that processes share.
func (g *gate) handOver(me int64) {
	g.last.Store(me)
	g.released.Store(now())
}

// holderID tells the clients of all processes apart.
func holderID(process, client int) int64 { return int64(process)<<32 + int64(client) + 1 }

// handedOver tells since when the lock was under way from another process; call it inside.
func (g *gate) handedOver(me int64) (since int64, ok bool) {
	last := g.last.Load()
	return g.released.Load(), last != 0 && last>>32 != me>>32
}

// openGates gives n gates, from the file if there is one.
func openGates(file string, n int) (gates []gate, free func(), err error) {
	if file == "" {
		return make([]gate, n), func() {}, nil
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	memory, err := unix.Mmap(int(f.Fd()), 0, n*gateSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	gates = unsafe.Slice((*gate)(unsafe.Pointer(unsafe.SliceData(memory))), n)
	return gates, func() { _ = unix.Munmap(memory) }, nil
}

// makeGates makes a file for n gates.
func makeGates(file string, n int) error {
	return os.WriteFile(file, make([]byte, n*gateSize), 0o600)
}
