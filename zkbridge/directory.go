package zkbridge

import (
	"errors"
	"fmt"
	"hash/maphash"

	"github.com/go-zookeeper/zk"
)

// directory is what an epoch knows of a directory that nodes are created in.
type directory struct {
	path    string
	rewrite *zk.SetDataRequest // of its data, which is empty, or nil: Java tells them apart, and it stays as it is
	waiting []*create          // until it was looked at
	state   dirState
	asking  bool   // a job looks at it, or makes it
	dropped bool   // from the cache: there may be another of the same path
	slot    int32  // in batch
	batch   uint64 // number of the last batch with creates here

	// The node made here last, if it was alone then; see follows.
	newest  uint64 // its name, hashed: a string would take more than all else here
	next    int64  // the number after its own; 0 if it was not alone
	czxid   int64  // of the directory
	deletes uint64 // number of the batch that deletes it
}

type dirState uint8

const (
	dirUnknown  dirState = iota
	dirEmpty             // no data: writing none again changes nothing
	dirReadOnly          // somebody's data, or not ours to write: leave it alone
)

func (d *directory) writable() bool { return d.state == dirEmpty }

func (d *directory) forget() { d.state, d.next = dirUnknown, 0 }

// made notes the node that was made last, and whether it was alone then: not even another
// of its own transaction was there.
func (d *directory) made(c *create, node string, alone bool, czxid int64) {
	d.next, d.czxid = 0, czxid
	if n, ok := numberOf(node, c.prefix); ok && alone {
		d.newest, d.next = hash(node), n+1
	}
}

// leaves notes that a node is deleted in the batch of this number.
func (d *directory) leaves(path string, batch uint64) {
	if d.next == 0 {
		return
	}
	// Its number would not do: there may be another of that number in a directory that was
	// made since.
	if _, node := splitPath(path); hash(node) == d.newest {
		d.deletes = batch
	}
}

func hash(name string) uint64 { return maphash.String(seed, name) }

var seed = maphash.MakeSeed()

// follows is next, if the batch of this number deletes the node made last; else 0. Then
// one node can be made in that batch without writing the directory's data. What that would
// tell is known: it is still the directory in which the former node was alone, and if the
// new one has the next number, nobody else has made any in between.
func (d *directory) follows(batch uint64) int64 {
	if d.deletes == batch {
		return d.next
	}
	return 0
}

// othersBeside is how many nodes are beside c's, which was made as the only one before
// next was deleted; -1 if that is not known.
func (c *create) othersBeside(node string, next int64) int32 {
	if n, ok := numberOf(node, c.prefix); ok && n == next {
		return 0
	}
	return -1
}

// directories is a cache. To forget one costs a read at its next create.
type directories map[string]*directory

const maxDirectories = 1 << 15

func (ds *directories) get(path string) *directory {
	if d := (*ds)[path]; d != nil {
		return d
	}
	if *ds == nil {
		*ds = directories{}
	}
	ds.makeRoom()
	d := &directory{path: path}
	(*ds)[path] = d
	return d
}

// makeRoom drops any one that is not in use.
func (ds directories) makeRoom() {
	if len(ds) < maxDirectories {
		return
	}
	for path := range ds {
		if ds.drop(path) {
			return
		}
	}
}

// drop forgets a directory that is not in use, and tells whether it has.
func (ds directories) drop(path string) bool {
	d := ds[path]
	if d == nil || d.asking || len(d.waiting) > 0 {
		return false
	}
	delete(ds, path)
	d.forget()
	d.dropped = true
	return true
}

// place sends a create on its way, by what is known of its directory.
func (ep *epoch) place(c *create) {
	ep.direct(c)
	switch {
	case c.beside != "":
		ep.createAlone(c)
	case c.dir.state == dirEmpty:
		ep.outbox.add(write{c: c})
	case c.dir.state == dirReadOnly:
		ep.createAlone(c)
	default:
		c.dir.waiting = append(c.dir.waiting, c)
		ep.lookAt(c.dir)
	}
}

// direct finds the directory of a create, which may have been dropped since.
func (ep *epoch) direct(c *create) {
	if c.dir == nil || c.dir.dropped {
		c.dir = ep.dirs.get(c.directory)
	}
}

// maxTries is how often a create is begun anew because its directory is gone, or
// because it was not executed after all.
const maxTries = 100

// replace is place for a create that was not executed because of err.
func (ep *epoch) replace(c *create, err error) {
	c.tries++
	if c.tries > maxTries {
		_, why := judge(err)
		ep.fail(c, why, "create %s: given up after %d attempts: %v", c.path(), c.tries, err)
		return
	}
	ep.place(c)
}

// lookAt learns whether the directory's data may be written, and makes it if it
// is not there.
func (ep *epoch) lookAt(d *directory) {
	if d.asking {
		return
	}
	d.asking = true
	ep.solos.do(func() func() {
		state, data, err := inspect(ep.client, d.path)
		return func() { ep.lookedAt(d, state, data, err) }
	})
}

func (ep *epoch) lookedAt(d *directory, state dirState, data []byte, err error) {
	d.asking = false
	if err != nil {
		if what, _ := judge(err); what == lost || what == notSent {
			ep.again(func() { ep.lookAt(d) })
			return
		}
	}
	waiting := d.waiting
	d.state, d.waiting = state, nil
	d.rewrite = &zk.SetDataRequest{Path: d.path, Data: data, Version: anyVersion}
	for _, c := range waiting {
		c.waits = false
		switch _, open := ep.open[c]; {
		case err != nil:
			ep.cannotPlace(c, err)
		case c.joint == nil:
			ep.place(c)
		case open:
			ep.placeJoint(c.joint)
		}
	}
}

// cannotPlace ends a create whose directory is of no use.
func (ep *epoch) cannotPlace(c *create, err error) {
	_, why := judge(err)
	if c.joint != nil {
		ep.failJoint(c.joint, why, err)
		return
	}
	ep.fail(c, why, "create %s: %v", c.path(), err)
}

// inspect is the blocking part of lookAt. It gives the data only where it is empty.
func inspect(c client, path string) (dirState, []byte, error) {
	for range maxTries {
		data, _, err := c.Get(path)
		switch {
		case err == nil && len(data) == 0:
			return dirEmpty, data, nil
		case err == nil:
			return dirReadOnly, nil, nil
		case !errors.Is(err, zk.ErrNoNode):
			return dirUnknown, nil, fmt.Errorf("read directory %s: %w", path, need{"READ", path}.explain(err))
		}
		made, err := makeDirectory(c, path)
		if err != nil {
			return dirUnknown, nil, err
		}
		if made {
			return dirEmpty, noData, nil
		}
		// Somebody else has made it in between, and may have given it data.
	}
	return dirUnknown, nil, fmt.Errorf("directory %s comes and goes: %w", path, zk.ErrNoNode)
}
