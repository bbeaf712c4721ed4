package zkconn

import (
	"cmp"
	"errors"
	"sync/atomic"

	"github.com/go-zookeeper/zk"
)

// DirectoryRead is a read of a directory: of its czxid, and of the names in it or not.
type DirectoryRead struct {
	Path      string
	WithNames bool

	Listing Listing // the result, empty with an Err
	Err     error
}

func (c zkClient) ReadDirectories(reads []DirectoryRead, then func()) {
	first := c.firstPiece(reads)
	if first == len(reads) {
		c.readPiece(reads, then)
		return
	}
	answered := afterCalls(2, then)
	c.readPiece(reads[:first], answered)
	c.ReadDirectories(reads[first:], answered)
}

// afterCalls returns a function whose nth call calls then. The calls may come from several goroutines.
func afterCalls(n int, then func()) func() {
	var left atomic.Int32
	left.Store(int32(n))
	return func() {
		if left.Add(-1) == 0 {
			then()
		}
	}
}

// firstPiece returns how many of the reads one message has.
func (c zkClient) firstPiece(reads []DirectoryRead) int {
	return Sharing(len(reads), len(reads), func(i int) int {
		size := OpBytes + len(c.root) + len(reads[i].Path)
		if reads[i].WithNames {
			size *= 3 // see encodeMultiRead
		}
		return size
	})
}

// readPiece reads directories by one message, or each by one.
func (c zkClient) readPiece(reads []DirectoryRead, then func()) {
	if len(reads) == 1 || !c.session.cfg.knows(optMultiRead) {
		c.readOneByOne(reads, then)
		return
	}
	sendQuery(c.session, encodeMultiRead(c.root, reads), func(r *reader) (none struct{}, err error) { return none, r.listings(reads) },
		func(_ struct{}, err error) {
			c.noteMultiRead(err)
			for i := range reads {
				if r := &reads[i]; err != nil && !errors.Is(err, zk.ErrNoAuth) {
					r.Listing, r.Err = Listing{}, err
				}
			}
			then()
		})
}

func (c zkClient) readOneByOne(reads []DirectoryRead, then func()) {
	all := afterCalls(len(reads), then) // the answers may come over two connections
	for i := range reads {
		read := &reads[i]
		answered := func(listing Listing, err error) {
			read.Listing, read.Err = listing, err
			all()
		}
		if read.WithNames {
			c.List(read.Path, false, answered)
		} else {
			sendQuery(c.session, encodeRead(opExists, c.root.prepend(read.Path), false),
				func(r *reader) (Listing, error) { return Listing{Czxid: r.stat().Czxid}, nil }, answered)
		}
	}
}

// noteMultiRead notes the result of a multiRead. It is not sent any more if a server does not know
// it, if its answer is too large, or if a directory must not be read, whose stat may be.
func (c zkClient) noteMultiRead(err error) {
	c.session.cfg.noteResult(optMultiRead, err)
	if errors.Is(err, errTooLarge) || errors.Is(err, zk.ErrNoAuth) {
		c.session.cfg.noteUnknown(optMultiRead, err)
	}
}

// encodeMultiRead returns the message that reads directories below root. It knows no exists, so that
// it reads their data for the stat. Names come without a stat, and ZooKeeper may execute a
// transaction of another session between two of its reads: so the stat is read before and after the
// names.
func encodeMultiRead(root Chroot, reads []DirectoryRead) []byte {
	b := newMessage(opMultiRead, OpBytes*(2+3*len(reads)))
	add := func(op int32, path string) { b = appendBool(appendText(appendOpHeader(b, op, false), path), false) }
	for _, read := range reads {
		path := root.prepend(read.Path)
		add(opGetData, path)
		if read.WithNames {
			add(opChildNames, path)
			add(opGetData, path)
		}
	}
	return appendOpHeader(b, -1, true)
}

// listings writes the results of a multiRead into reads. The Listing of a directory that was deleted
// and made again meanwhile is empty. It returns an error that several reads may have in common.
func (r *reader) listings(reads []DirectoryRead) (common error) {
	for i := range reads {
		read := &reads[i]
		before, _, err := r.part(opGetData)
		found := Listing{Czxid: before.Stat.Czxid}
		if read.WithNames {
			_, names, namesErr := r.part(opChildNames)
			after, _, afterErr := r.part(opGetData)
			err = cmp.Or(err, namesErr, afterErr)
			if found.Children = names; after.Stat.Czxid != found.Czxid {
				found = Listing{}
			}
		}
		if err != nil {
			found = Listing{}
		}
		if read.Listing, read.Err = found, err; errors.Is(err, zk.ErrNoAuth) {
			common = err
		}
	}
	return common
}

// part returns the result of one read of a multiRead: of a node, or of the names in a directory.
func (r *reader) part(want int32) (found Content, names []string, err error) {
	switch op, _, _ := r.int(), r.bool(), r.int(); {
	case op == opError:
		err = errorOf(r.int())
		r.bad = r.bad || err == nil
	case op != want:
		r.bad = true
	case op == opGetData:
		found = Content{r.data(), r.stat()}
	default:
		names = r.texts()
	}
	return found, names, err
}
