package main

import (
	"os"
	"sync/atomic"
	"unsafe"
)

// section is the critical section of one lock, by which bench checks exclusion: holders enter and leave it. It is in
// memory, or in a file that several processes have mapped. The workers in Java and Python use the same layout.
type section struct {
	owner    atomic.Int64 // id of the client inside; 0: none
	last     atomic.Int64 // id of the client that left last
	released atomic.Int64 // instant at which it left
	sharers  atomic.Int64 // number of readers or permit holders inside
	_        [4]int64     // locks of different clients do not share a cache line
}

const sectionSize = int(unsafe.Sizeof(section{}))

// enter reports whether no other client is inside. me is not 0.
func (g *section) enter(me int64) (alone bool) { return g.owner.Swap(me) == 0 }

// enterBy is enter by a recipe of access. Readers and permit holders may be inside together.
func (g *section) enterBy(recipe string, me int64) (allowed bool) {
	switch recipe {
	case readMode:
		g.sharers.Add(1)
		return g.owner.Load() == 0
	case writeMode:
		return g.enter(me) && g.sharers.Load() == 0
	case semaphore:
		return g.sharers.Add(1) <= permits
	}
	return g.enter(me)
}

func (g *section) leaveBy(recipe string, me int64) {
	switch recipe {
	case readMode, semaphore:
		g.sharers.Add(-1)
	default:
		g.leave(me)
	}
}

// leave must be called before the lock is released. It leaves another client inside after a violation.
func (g *section) leave(me int64) { g.owner.CompareAndSwap(me, 0) }

// recordRelease records that me is about to release a lock that processes share.
func (g *section) recordRelease(me int64) {
	g.last.Store(me)
	g.released.Store(now())
}

// holderID returns an id that is unique among the clients of all processes.
func holderID(process, client int) int64 { return int64(process)<<32 + int64(client) + 1 }

// handedOver reports whether the last holder was of another process, and when it released. The caller is inside.
func (g *section) handedOver(me int64) (since int64, ok bool) {
	last := g.last.Load()
	return g.released.Load(), last != 0 && last>>32 != me>>32
}

// openSections returns n sections, in the file unless its name is empty.
func openSections(file string, n int) (sections []section, free func(), err error) {
	if file == "" {
		return make([]section, n), func() {}, nil
	}
	return mapFile[section](file, n)
}

// makeSections creates a file for n sections.
func makeSections(file string, n int) error {
	return os.WriteFile(file, make([]byte, n*sectionSize), 0o600)
}
