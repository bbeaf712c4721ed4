package writer

import "github.com/actorlock/actorlock/zkbridge/internal/zkconn"

// watchedDirectories are the directories that the present connection watches, or is about to. A
// create in one of them needs no read behind it: ZooKeeper sends the event of the watch before the
// answer to any transaction behind the deletion of the directory. So if no event has come when the
// create is answered, its node is in the directory that the read has shown which has set the watch.
//
// A watch goes with its connection, and is not set again on the next one: there the next create
// in the directory reads it, which sets the watch, too. So many watches cost a new connection
// nothing before it serves requests.
type watchedDirectories struct {
	byPath map[string]*watchedDirectory
}

// watchedDirectory is one of them, from the moment at which its read is sent until the first event.
type watchedDirectory struct {
	path  string
	czxid int64 // that the read has shown; 0 before
}

// watchedRead is the read of a batch that sets the watch of a directory.
type watchedRead struct {
	of    *watchedDirectory
	czxid int64 // the result, 0 of a read that has failed
}

// maxWatched bounds the watches of a session on directories: the server keeps some 200 bytes for each.
// Directories beyond the bound are read behind each create.
const maxWatched = 1 << 16

// add begins a watch on a directory. It returns nil if there are too many.
func (d *watchedDirectories) add(path string) *watchedDirectory {
	if len(d.byPath) >= maxWatched {
		return nil
	}
	if d.byPath == nil {
		d.byPath = map[string]*watchedDirectory{}
	}
	w := &watchedDirectory{path: path}
	d.byPath[path] = w
	return w
}

// czxid returns the czxid of a directory that is watched, or 0 for any other.
func (d *watchedDirectories) czxid(path string) int64 {
	if w := d.byPath[path]; w != nil {
		return w.czxid
	}
	return 0
}

// onRead notes the result of a read that sets a watch. It does not count if an event or the end of
// the connection has come meanwhile.
func (d *watchedDirectories) onRead(r watchedRead) {
	switch {
	case d.byPath[r.of.path] != r.of:
	case r.czxid == 0:
		delete(d.byPath, r.of.path)
	default:
		r.of.czxid = r.czxid
	}
}

// OnChanged notes the event of a watch on a node, which may be a directory.
func (w *Writer) OnChanged(path string) { delete(w.watched.byPath, path) }

// OnConnection notes that requests go over another connection, or over none.
func (w *Writer) OnConnection() { w.watched.byPath = nil }

// Unwatch forgets the watch on a directory, and reports whether there was one. Another create in the
// directory sets it anew.
func (w *Writer) Unwatch(path string) bool {
	_, was := w.watched.byPath[path]
	delete(w.watched.byPath, path)
	return was
}

// IsWatched reports whether a directory is watched, or about to be.
func (w *Writer) IsWatched(path string) bool { return w.watched.byPath[path] != nil }

// watch has the watch of the create's directory say which directory that is, in the place of a read,
// and reports whether it can. The first such create sets the watch. A directory that this process
// has seen once is mostly used once: its watch would cost a request more than it saves.
func (b *batch) watch(c *Create) bool {
	path := c.msg.GetDirectory()
	i, known := b.readIndex[path]
	if !c.seen || c.msg.GetListAfter() || known && i >= 0 {
		return false
	}
	if b.watched.byPath[path] == nil {
		d := b.watched.add(path)
		if d == nil {
			return false
		}
		b.watches = append(b.watches, watchedRead{of: d})
		b.size += zkconn.OpBytes + b.root + len(path)
	}
	if !known {
		b.readIndex[path] = watched
	}
	c.read = watched
	return true
}

// sendWatches sends the reads that set watches.
func (b *batch) sendWatches(client zkconn.Client, answered func()) {
	for i := range b.watches {
		r := &b.watches[i]
		client.Get(r.of.path, true, func(found zkconn.Content, err error) { // exists would also set a watch on a missing directory
			if err == nil {
				r.czxid = found.Stat.Czxid
			}
			answered()
		})
	}
}
