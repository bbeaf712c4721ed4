package group

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/manager"
	"github.com/actorlock/actorlock/actors/internal/partition"
	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Snapshot is the state of a group at one moment. Nothing writes to it.
type Snapshot struct {
	// View is the state that was read last; nil before the first one.
	View *partition.View
	// Snapshot is the queue that it was made of.
	Snapshot inspection.Snapshot
	// Err is the reason why the state cannot be read at present.
	Err error
	// Wrong says that a member has another number of partitions. The view leaves it out.
	Wrong error
}

// Follower follows the state of the group at a path, from its first use until the manager's end. Its
// methods may be called from any goroutine.
type Follower struct {
	Manager    *manager.Manager
	Path       string
	Partitions int

	state   atomic.Pointer[Snapshot] // nil before the first answer
	started sync.Once
	again   chan struct{} // has room for one

	mu      sync.Mutex
	changed chan struct{}          // closed at the next change
	tell    map[*Membership]func() // called at each change
	records map[string]known       // by node: of the snapshot that was read last
}

// known is the record of a node. Its data never change.
type known struct {
	member partition.MemberRecord
	is     bool
}

// NewFollower returns a Follower that has not started.
func NewFollower(m *manager.Manager, path string, partitions int) *Follower {
	return &Follower{Manager: m, Path: path, Partitions: partitions, again: make(chan struct{}, 1), changed: make(chan struct{}),
		tell: map[*Membership]func(){}, records: map[string]known{}}
}

// Directories and nodes of a group, below its path.

// Members returns the path of the list of members.
func Members(path string) string { return zkpath.Join(path, "members") }

// CountPath returns the path of the number of partitions.
func CountPath(path string) string { return zkpath.Join(path, "count") }

// LockPath returns the path of a partition's lock.
func LockPath(path string, p int) string {
	return zkpath.Join(path, fmt.Sprintf("partitions/%05d", p))
}

// pause is the least time between two reads: many members publish at a time, and a reader finds all
// that they have published.
const pause = 20 * time.Millisecond

// start starts to follow. It does not block.
func (f *Follower) start() {
	f.started.Do(func() {
		target := &inspection.Target{Manager: f.Manager, Path: Members(f.Path), Pause: pause, Again: f.again}
		go func() {
			target.Observe(f.Manager.Ended(), f.onRead)
			f.publish(func(s *Snapshot) { s.Err = f.closed() })
		}()
	})
}

func (f *Follower) closed() error {
	return &messages.Refused{Reason: messages.Reason_CLOSED, Detail: "partitions of " + f.Path}
}

// readAgain asks for a read of the state. No watch reports that a missing directory is made.
func (f *Follower) readAgain() {
	select {
	case f.again <- struct{}{}:
	default:
	}
}

func (f *Follower) onRead(q inspection.Snapshot, err error) {
	f.publish(func(s *Snapshot) {
		s.Err = err
		if err != nil && q.Recipe == "" {
			return // the view is the last one
		}
		var all []partition.MemberRecord
		records := make(map[string]known, len(q.Contenders))
		for i := range q.Contenders {
			c := &q.Contenders[i]
			record := f.records[c.Node]
			if !record.is { // not known, or overwritten by a revocation, after which its holder restores it
				record = parse(c)
			}
			records[c.Node] = record
			if record.is {
				all = append(all, record.member)
			}
		}
		f.records, s.Snapshot = records, q
		s.View, s.Wrong = partition.NewView(f.Path, all, f.Partitions)
	})
}

func parse(c *inspection.Contender) known {
	record, id, is := partition.Parse(c.Data)
	return known{partition.MemberRecord{ID: id, Record: record, Published: publishedBy(c.Node)}, is}
}

// publishedBy returns the order of a record by its node; 0 is before all records.
func publishedBy(node string) int64 {
	_, name := zkpath.Split(node)
	seq, _, _ := queue.Parse(name)
	return queue.Rank(seq) + 1
}

// publish changes the state, and tells of it.
func (f *Follower) publish(change func(*Snapshot)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := Snapshot{}
	if s := f.state.Load(); s != nil {
		next = *s
	}
	change(&next)
	f.state.Store(&next)
	close(f.changed)
	f.changed = make(chan struct{})
	for _, tell := range f.tell {
		tell()
	}
}

// State returns the present state, and a channel that is closed at the next change. The state is nil
// before the first one is read.
func (f *Follower) State() (*Snapshot, <-chan struct{}) {
	f.start()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state.Load(), f.changed
}

// Read returns the state that was read last, which has a View. It blocks until there is one, the first
// read has failed, or ctx ends.
func (f *Follower) Read(ctx context.Context) (*Snapshot, error) {
	if f.Manager.Ended().Err() != nil {
		return nil, f.closed()
	}
	if s := f.state.Load(); s != nil && s.View != nil {
		return s, nil
	}
	for {
		s, changed := f.State()
		switch {
		case s == nil:
		case s.View != nil:
			return s, nil
		case s.Err != nil:
			return nil, s.Err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, f.Manager.Session.Explain(fmt.Errorf("partitions of %s: %w", f.Path, context.Cause(ctx)))
		}
	}
}

// CheckData returns an error for data of a member that are too large.
func (f *Follower) CheckData(data []byte) error {
	if err := partition.CheckData(data, f.Partitions); err != nil {
		return err
	}
	return f.Manager.CheckNodeData(partition.LargestRecord(data, f.Partitions).Encode())
}

// listen has tell called now, if there is a state, and at each change.
func (f *Follower) listen(m *Membership, tell func()) {
	f.start()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tell[m] = tell
	if f.state.Load() != nil {
		tell()
	}
}

func (f *Follower) ignore(m *Membership) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tell, m)
}
