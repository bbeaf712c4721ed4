package main

import (
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// termRecord is a term of a partition, as the member tells it in memory that it shares with bench. Bench can read it also after
// the member was killed, and while it is stopped. Instants are those of now.
type termRecord struct {
	partition atomic.Int64 // and 1; 0: there is no such term yet
	begun     atomic.Int64
	sure      atomic.Int64 // last instant at which the member asked whether the term lasts, and was told that it does; 0: never
	ended     atomic.Int64 // 0: not yet
}

// Limits of the memory that members share.
const (
	maxTerms   = 1 << 15 // of one member
	maxMembers = 16      // of one trial, from 1 on
)

// effectPeriod is the time in which a partition has one effect to make, as a job that is due at regular instants.
const effectPeriod = 10 * time.Millisecond

// effectCell is what the store has for a partition. The store has no tokens: it takes each effect. The leader knows from the
// store which effect was the last one when its term begins, and makes the later ones when they are due.
type effectCell struct{ last atomic.Int64 } // number of the period, times maxMembers, and the member that made it

// effectStore is what all members of a trial write to.
type effectStore struct {
	twice []atomic.Int64 // effects that were made already, by the member that repeats and the member before it
	cells []effectCell   // by partition
}

// twiceBy returns the effects that a member repeated or had repeated by others.
func (s *effectStore) twiceBy(member int) (n int) {
	for other := range maxMembers {
		n += int(s.twice[member*maxMembers+other].Load() + s.twice[other*maxMembers+member].Load())
	}
	return n
}

func (s *effectStore) twiceByAll() (n int) {
	for i := range s.twice {
		n += int(s.twice[i].Load())
	}
	return n
}

// openStore maps the file of a store. It creates the file if there is none.
func openStore(file string, partitions int) (*effectStore, func(), error) {
	words, free, err := mapFile[atomic.Int64](file, maxMembers*maxMembers+partitions)
	if err != nil {
		return nil, nil, err
	}
	cells := unsafe.Slice((*effectCell)(unsafe.Pointer(&words[maxMembers*maxMembers])), partitions)
	return &effectStore{words[:maxMembers*maxMembers], cells}, free, nil
}

// mapFile returns n values in a file that several processes have mapped. The file is created with zeros if there is none.
func mapFile[T any](file string, n int) (values []T, free func(), err error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	size := n * int(unsafe.Sizeof(*new(T)))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, nil, err
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, os.NewSyscallError("mmap", err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), n), func() { _ = unix.Munmap(memory) }, nil
}

// termLedger writes down the terms of a member, and makes the effects of its partitions.
type termLedger struct {
	member int
	store  *effectStore
	terms  []termRecord

	mu   sync.Mutex
	used int // of terms
	held map[*heldTerm]bool
}

func newLedger(member int, s *effectStore, terms []termRecord) *termLedger {
	return &termLedger{member: member, store: s, terms: terms, held: map[*heldTerm]bool{}}
}

// heldTerm is a term that has not ended.
type heldTerm struct {
	ledger    *termLedger
	partition int
	record    *termRecord
	ask       func() error // as the system's documentation says that a holder is to ask

	mu    sync.Mutex // while the holder works
	ended bool
	last  int64 // period of the last effect
}

// begin notes that the member leads a partition. ask returns nil while it does, to its knowledge.
func (l *termLedger) begin(partition int, ask func() error) *heldTerm {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := &heldTerm{ledger: l, partition: partition, record: &l.terms[l.used], ask: ask, last: l.store.cells[partition].last.Load() / maxMembers}
	l.used++
	t.record.begun.Store(now())
	t.record.partition.Store(int64(partition) + 1)
	l.held[t] = true
	return t
}

// end notes that the term ends. The partition may be given away when it has returned: no effect is under way.
func (t *heldTerm) end() {
	t.mu.Lock()
	t.ended = true
	t.record.ended.Store(now())
	t.mu.Unlock()
	t.ledger.mu.Lock()
	defer t.ledger.mu.Unlock()
	delete(t.ledger.held, t)
}

// work makes effects until the process ends.
func (l *termLedger) work() {
	for range time.Tick(effectPeriod) {
		l.mu.Lock()
		var held []*heldTerm
		for t := range l.held {
			held = append(held, t)
		}
		l.mu.Unlock()
		for _, t := range held {
			t.work()
		}
	}
}

// work asks whether the term lasts, and then makes the effect of the present period.
func (t *heldTerm) work() {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := now() // before the question: a member that stops between the two claims nothing for the time of the stop
	if t.ended || t.ask() != nil {
		return
	}
	t.record.sure.Store(at)
	period := at / int64(effectPeriod)
	if period <= t.last {
		return
	}
	t.last = period
	me := int64(t.ledger.member)
	before := t.ledger.store.cells[t.partition].last.Swap(period*maxMembers + me)
	if other := before % maxMembers; before/maxMembers >= period && other != me {
		t.ledger.store.twice[me*maxMembers+other].Add(1)
	}
}
