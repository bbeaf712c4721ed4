package writer

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/internal/reply"
	"github.com/actorlock/actorlock/zkbridge/internal/zkconn"
)

// lines is a writer whose batches a test answers.
type lines struct {
	Epoch
	t      *testing.T
	w      *Writer
	failed map[reply.Request]messages.Reason
}

func newLines(t *testing.T) *lines {
	l := &lines{t: t, failed: map[reply.Request]messages.Reason{}}
	l.w = New(l, Dependencies{Settings: &zkconn.Settings{}})
	l.w.SessionNode = "/actorlock/session-1"
	return l
}

func (l *lines) IsOpen(r reply.Request) bool {
	_, failed := l.failed[r]
	return !failed
}

func (l *lines) Fail(r reply.Request, why messages.Reason, _ string, _ ...any) { l.failed[r] = why }

func (l *lines) Client() zkconn.Client { return pathClient{} }

// pathClient is a client without a chroot.
type pathClient struct{ zkconn.Client }

func (pathClient) FullPath(path string) string { return path }

// create returns a create in a directory, which must exist if required is set.
func (l *lines) create(directory string, required bool) *Create {
	msg := &messages.Create{Directory: directory, Prefix: "n-"}
	if required {
		msg.Required = directory
	}
	return NewCreate(reply.To{}, msg, nil)
}

// missing answers a batch that the directory of its first create is missing.
func (l *lines) missing(b *batch) { l.w.onMissingDirectory(b, b.writes[0].(*Create)) }

// sent returns the next batch, which must have only these creates, and make that many directories.
func (l *lines) sent(build func() *batch, containers int, creates ...*Create) *batch {
	l.t.Helper()
	b := build()
	if b == nil || len(b.writes) != len(creates) || len(b.containers) != containers {
		l.t.Fatalf("sends %+v, not %d creates and %d directories", b, len(creates), containers)
	}
	for i, c := range creates {
		if b.writes[i] != c {
			l.t.Fatalf("sends %+v as number %d, not %+v", b.writes[i], i, c)
		}
	}
	return b
}

// refused checks that the creates have failed because a directory is missing.
func (l *lines) refused(creates ...*Create) {
	l.t.Helper()
	for _, c := range creates {
		if why := l.failed[c]; why != messages.Reason_NO_DIRECTORY {
			l.t.Errorf("the create in %s has failed with %v", c.msg.GetDirectory(), why)
		}
	}
}

// A create behind an atomic create is sent when the atomic create has failed because of another
// directory.
func TestLineBehindAFailedAtomicCreate(t *testing.T) {
	l := newLines(t)
	first, behind := l.create("/missing", true), l.create("/new", false)
	parts := []*Create{l.create("/missing", true), l.create("/new", false)}
	all := NewAtomicCreate(parts)
	l.w.Create(first.Group())
	b := l.sent(l.w.buildNewBatch, 0, first)
	l.w.Create(all)
	l.w.Create(behind.Group())
	if b := l.w.buildNewBatch(); b != nil {
		t.Fatalf("sends %+v, though a part is not the first of its line", b)
	}
	l.missing(b)
	l.refused(first)
	l.missing(l.sent(l.w.buildNewBatch, 1, parts...))
	l.refused(parts...)
	l.sent(l.w.buildNewBatch, 1, behind)
}

// A create that came behind the transaction is not refused by its answer: another client may have
// made the directory before.
func TestLineBehindARefusedCreate(t *testing.T) {
	l := newLines(t)
	early, late := l.create("/d", true), l.create("/d", true)
	l.w.Create(early.Group())
	b := l.sent(l.w.buildNewBatch, 0, early)
	l.w.Create(late.Group())
	l.missing(b)
	l.refused(early)
	if why, failed := l.failed[late]; failed {
		t.Errorf("the later one has failed: %v", why)
	}
	l.sent(l.w.buildNewBatch, 0, late)
}

// A create behind creates that are refused because ZooKeeper does not make their directory has it
// made again: the right may be granted since.
func TestLineBehindARefusedDirectory(t *testing.T) {
	l := newLines(t)
	early, late := l.create("/d", false), l.create("/d", false)
	l.w.Create(early.Group())
	l.w.onContainerFailed(l.sent(l.w.buildNewBatch, 1, early), 0, zk.ErrNoAuth)
	b := l.sent(l.w.buildNewBatch, 0, early)
	l.w.Create(late.Group())
	l.missing(b)
	if why := l.failed[early]; why != messages.Reason_NO_AUTH {
		t.Errorf("the first one has failed with %v", why)
	}
	l.sent(l.w.buildNewBatch, 1, late)
}

// No transaction makes a directory that must exist, also while creates are open that were sent before
// it was deleted.
func TestRequiredDirectoryIsNotMade(t *testing.T) {
	l := newLines(t)
	create := func() *Create {
		c := l.create("/d", true)
		l.w.Create(c.Group())
		return c
	}
	one := create()
	first := l.sent(l.w.buildNewBatch, 0, one)
	two := create()
	l.w.onInUse(first)
	second := l.sent(l.w.buildBatch, 0, two)
	three := create() // stays in the queue: the directory is known as long as it is open
	l.missing(second)
	l.missing(l.sent(l.w.buildNewBatch, 0, two))
	l.refused(two)
	four := create()
	l.missing(l.sent(l.w.buildNewBatch, 0, four))
	l.refused(four)
	if why, failed := l.failed[three]; failed {
		t.Errorf("a create that is not sent has failed: %v", why)
	}
}
