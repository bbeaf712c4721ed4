package zkconn

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// Client is the requests that the bridge sends to ZooKeeper. Its methods may be called from any
// goroutine. Methods with a callback do not block; those requests of one goroutine are sent, and
// answered, in order. The other methods block, until the end of the connection at the latest.
type Client interface {
	// Multi sends a transaction.
	Multi(ops []Op, then Callback[[]zk.MultiResponse])
	// Delete deletes a node. Its one result is empty.
	Delete(path string, then Callback[[]zk.MultiResponse])
	// CreateSequential creates an ephemeral sequential node. Its one result has the path and, from a
	// server that knows create2, the node's stat.
	CreateSequential(path string, data []byte, then Callback[[]zk.MultiResponse])
	// List reads the names in a directory. It sets a watch on them if watch is set and it succeeds.
	List(directory string, watch bool, then Callback[Listing])
	// ReadDirectories reads directories, several by one message if the server lets it. It writes the
	// results into reads before it calls then.
	ReadDirectories(reads []DirectoryRead, then func())
	// Get reads a node. It sets a watch on the node if watch is set and it succeeds.
	Get(path string, watch bool, then Callback[Content])
	// WatchNodes reads nodes and sets watches on them, as Get does, by two messages for all. It writes the
	// results into reads before it calls then. With an error there are no results, and the watches may be
	// set or not. Its caller has no request sent meanwhile over another connection.
	WatchNodes(reads []NodeRead, then func(error))
	// ReadNodes reads nodes, as Get does without a watch, by one message for all. It writes the results into
	// reads before it calls then. With an error there are no results: the server may not know the message, or
	// the answer may be too large.
	ReadNodes(reads []NodeRead, then func(error))
	// WatchSince sets watches on nodes. The event comes at once for a node that is gone, or that
	// was written after a zxid. There is no event without READ on the node, and no error.
	WatchSince(paths []string, since int64, then func(error))
	// RemoveWatch takes back the present connection's watch on a node itself, if there is one. Over a
	// server that does not know the request the watch stays until its event, or until the connection
	// ends.
	RemoveWatch(path string, then func())
	// SetWatches sets watches again that were set over another connection. It must come before
	// any other request over the connection.
	SetWatches(over *Conn, nodes, directories []string)
	// ReadAndWatch reads a node over a connection, and sets a watch on it, also if the node is
	// missing. It may come before any other request over the connection.
	ReadAndWatch(over *Conn, path string, then Callback[Content])

	// Create creates a node of exactly this path, without data. flags are go-zookeeper's.
	Create(path string, flags int32) error
	// CreateGuarded creates an ephemeral node of exactly this path if another node, its guard, exists.
	CreateGuarded(path string, data []byte, guard string) error
	// CreateContainer creates a directory without data.
	CreateContainer(path string) error
	// Exists reads the stat of a node. From 3.8.4 and 3.9.2 on, ZooKeeper denies the stat of a node that
	// the client may not READ: then exists is true, with zk.ErrNoAuth.
	Exists(path string) (stat zk.Stat, exists bool, err error)
	// Ephemerals returns the nodes of the session whose paths begin with prefix. It needs no right.
	Ephemerals(prefix string) (paths []string, err error)

	// Probe sends requests of the kinds that not every server knows, which change nothing. wait blocks
	// until they are answered, and returns an error if the connection has ended instead.
	Probe() (wait func() error)

	// WithPublicRead returns a client whose nodes all clients may read.
	WithPublicRead() Client
	// Parent returns a client whose root is the directory above this client's chroot; nil without a
	// chroot.
	Parent() Client

	// FullPath returns a path as ZooKeeper knows it, with the chroot in front.
	FullPath(path string) string
	// Chroot returns the chroot of Config.Servers, also from a client that Parent has returned.
	Chroot() string
}

// Await sends a request and blocks until its answer.
func Await[T any](ask func(Callback[T])) (answer T, err error) {
	done := make(chan struct{})
	ask(func(a T, e error) {
		answer, err = a, e
		close(done)
	})
	<-done
	return answer, err
}

// Multi sends a transaction and blocks until its answer.
func Multi(c Client, ops ...Op) ([]zk.MultiResponse, error) {
	return Await(func(then Callback[[]zk.MultiResponse]) { c.Multi(ops, then) })
}

// Read reads a node and blocks until the answer.
func Read(c Client, path string) (Content, error) {
	return Await(func(then Callback[Content]) { c.Get(path, false, then) })
}

// Children reads the names in a directory and blocks until the answer.
func Children(c Client, directory string, watch bool) (Listing, error) {
	return Await(func(then Callback[Listing]) { c.List(directory, watch, then) })
}

// NoData is empty data. Java clients distinguish it from nil, which some do not expect.
var NoData = []byte{}

// Listing is the names in a directory, and the czxid of the directory itself. Another directory of
// the same path has another czxid.
type Listing struct {
	Children []string
	Czxid    int64
}

// zkClient is the Client of a session. Its nodes have the ACL. All paths are below root and do not
// show it.
type zkClient struct {
	session *SessionConn
	acl     []zk.ACL
	root    Chroot // of the Settings, but for a client that Parent has returned
}

// NewClient returns the client on a session's connections. The nodes that it makes have the ACL of the Settings.
func NewClient(session *SessionConn) Client {
	return zkClient{session, session.cfg.ACL, session.cfg.Root}
}

// sendQuery sends a request and calls then with the answer that read has decoded.
func sendQuery[T any](l *SessionConn, request []byte, read func(*reader) (T, error), then Callback[T]) {
	l.send(request, decoding(l, "", read, then))
}

// decoding returns the callback of a request, which calls then with the answer that read has decoded. path
// is of the node that the request reads, and empty for a request whose answer cannot be larger than
// MaxReply.
func decoding[T any](l *SessionConn, path string, read func(*reader) (T, error), then Callback[T]) Callback[[]byte] {
	return func(body []byte, err error) {
		var answer T
		switch {
		case err == nil:
			r := reader{rest: body, newest: l.Zxid()}
			if answer, err = read(&r); r.bad {
				var none T
				answer, err = none, errGarbled
			}
		case path != "" && errors.Is(err, errTooLarge):
			l.logTooLarge(path, err)
		}
		then(answer, err)
	}
}

// waitQuery is sendQuery that blocks until the answer.
func waitQuery[T any](l *SessionConn, request []byte, read func(*reader) (T, error)) (T, error) {
	return Await(func(then Callback[T]) { sendQuery(l, request, read, then) })
}

// sendRead is sendQuery for a read of the node or directory at path, whose answer may be larger than MaxReply.
func sendRead[T any](l *SessionConn, op int32, path string, watch bool, read func(*reader) (T, error), then Callback[T]) {
	l.send(encodeRead(op, path, watch), decoding(l, path, read, then))
}

func (c zkClient) Multi(ops []Op, then Callback[[]zk.MultiResponse]) {
	containers := c.session.cfg.knowsContainers()
	answered := then
	if containers && len(ops) > 0 && ops[0].Kind == OpContainer {
		answered = func(results []zk.MultiResponse, err error) { then(results, c.onContainers(results, err)) }
	}
	sendQuery(c.session, encodeMulti(c.root, ops, containers),
		func(r *reader) ([]zk.MultiResponse, error) { return r.results(c.root, ops) }, answered)
}

// onContainers notes what the answer to a transaction that makes containers says of the server, and
// returns the transaction's error.
func (c zkClient) onContainers(results []zk.MultiResponse, err error) error {
	if len(results) > 0 { // the server has looked at the operations
		return err
	}
	c.session.cfg.noteResult(optContainerOp, err)
	if errors.Is(err, ServerError(CodeUnimplemented)) {
		return errNoContainers
	}
	return err
}

func (c zkClient) Delete(path string, then Callback[[]zk.MultiResponse]) {
	sendQuery(c.session, encodeDelete(c.root.prepend(path)),
		func(*reader) ([]zk.MultiResponse, error) { return make([]zk.MultiResponse, 1), nil }, then)
}

func (c zkClient) List(directory string, watch bool, then Callback[Listing]) {
	sendRead(c.session, opChildren, c.root.prepend(directory), watch, readListing, then)
}

func readListing(r *reader) (Listing, error) { return Listing{r.texts(), r.stat().Czxid}, nil }

// Content is the data and the stat of a node.
type Content struct {
	Data []byte
	Stat zk.Stat
}

func (c zkClient) Get(path string, watch bool, then Callback[Content]) {
	sendRead(c.session, opGetData, c.root.prepend(path), watch, readContent, then)
}

func readContent(r *reader) (Content, error) { return Content{r.data(), r.stat()}, nil }

func (c zkClient) WatchSince(paths []string, since int64, then func(error)) {
	if !c.session.cfg.knows(optSetWatches) {
		then(ServerError(CodeUnimplemented))
		return
	}
	requests := encodeSetWatches(since, c.root, paths, nil)
	var failed error
	for i, request := range requests { // answered in this order
		c.session.send(request, func(_ []byte, err error) {
			c.session.cfg.noteResult(optSetWatches, err)
			if failed = cmp.Or(failed, err); i == len(requests)-1 {
				then(failed)
			}
		})
	}
}

func (c zkClient) RemoveWatch(path string, then func()) {
	if !c.session.cfg.knows(optRemoveWatches) {
		then()
		return
	}
	c.session.send(encodeRemoveWatch(c.root.prepend(path)), func(_ []byte, err error) {
		c.session.cfg.noteResult(optRemoveWatches, err)
		then()
	})
}

func (c zkClient) SetWatches(over *Conn, nodes, directories []string) {
	if !c.session.cfg.knows(optSetWatches) {
		c.watchAgain(over, nodes, directories)
		return
	}
	requests := encodeSetWatches(c.session.eventsZxid.Load(), c.root, nodes, directories)
	over.rewatching.Store(int32(len(requests)))
	for _, request := range requests {
		c.setWatches(over, request)
	}
}

// throttlePause is the time until a message that the server has throttled is sent again.
const throttlePause = 100 * time.Millisecond

// setWatches sends one of the messages of SetWatches.
func (c zkClient) setWatches(over *Conn, request []byte) {
	again := slices.Clone(request)
	over.send(request, func(_ []byte, err error) {
		switch {
		case err == nil:
			over.rewatching.Add(-1)
		case IsThrottled(err):
			time.AfterFunc(throttlePause, func() { c.setWatches(over, again) })
		case !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, zk.ErrNoServer):
			c.session.cfg.Log.Error("ZooKeeper does not set watches again: another connection is tried", "error", err,
				"do", "if it is repeated, grant READ on the nodes of the locks")
			go over.Close() // no watcher would be woken
		}
	})
}

func (c zkClient) ReadAndWatch(over *Conn, path string, then Callback[Content]) {
	path = c.root.prepend(path)
	var watchErr error // both answers come in this order
	over.send(encodeRead(opExists, path, true), func(_ []byte, err error) {
		if !IsMissing(err) {
			watchErr = err
		}
	})
	over.send(encodeRead(opGetData, path, false), decoding(over.session, "", readContent, func(found Content, err error) {
		if err == nil || IsMissing(err) {
			err = cmp.Or(watchErr, err)
		}
		then(found, err)
	}))
}

func (c zkClient) Exists(path string) (zk.Stat, bool, error) {
	stat, err := waitQuery(c.session, encodeRead(opExists, c.root.prepend(path), false),
		func(r *reader) (zk.Stat, error) { return r.stat(), nil })
	if IsMissing(err) {
		return zk.Stat{}, false, nil
	}
	return stat, err == nil || errors.Is(err, zk.ErrNoAuth), err
}

func (c zkClient) Ephemerals(prefix string) ([]string, error) {
	if !c.session.cfg.knows(optEphemerals) {
		return nil, ServerError(CodeUnimplemented)
	}
	prefix = c.root.prepend(prefix)
	paths, err := waitQuery(c.session, appendText(newMessage(opGetEphemerals, OpBytes+len(prefix)), prefix),
		func(r *reader) ([]string, error) { return r.texts(), nil })
	c.session.cfg.noteResult(optEphemerals, err)
	for i := range paths {
		paths[i] = c.root.strip(paths[i])
	}
	return paths, err
}

func (c zkClient) WithPublicRead() Client {
	c.acl = WithPublicRead(c.acl)
	return c
}

func (c zkClient) Parent() Client {
	if c.root == "" {
		return nil
	}
	parent, _ := zkpath.Split(string(c.root))
	c.root = Chroot(strings.TrimSuffix(parent, "/"))
	return c
}

func (c zkClient) FullPath(path string) string { return c.root.prepend(path) }

func (c zkClient) Chroot() string { return string(c.session.cfg.Root) }

// WithPublicRead adds the right to READ for all.
func WithPublicRead(acl []zk.ACL) []zk.ACL {
	return append(slices.Clip(acl), zk.WorldACL(zk.PermRead)...)
}

// Barrier makes later reads see all that ZooKeeper had executed before it. A read alone could miss
// a transaction that is still on its way to this server. A transaction cannot overtake another one:
// not even a transaction that only checks, nor one that fails, since its error takes the same way.
// (sync is no such barrier on a leader.)
func Barrier(c Client, directory string) error { return SendBarrier(c, directory)() }

// SendBarrier is Barrier for reads that are sent behind it at once, without its answer: await returns
// that. The reads count only if the barrier was passed, or there is no directory.
func SendBarrier(c Client, directory string) (await func() error) {
	answer := make(chan error, 1)
	c.Multi([]Op{CheckExists(directory)}, func(_ []zk.MultiResponse, err error) { answer <- err })
	return func() error { return <-answer }
}

// Lookup is a node as it was read, and what is in its directory.
type Lookup struct {
	Node    string
	Stat    zk.Stat
	Exists  bool
	Listing Listing
}

// LookUp reads a node and its directory at once, in one flight. In a missing directory is no node.
func LookUp(c Client, directory, node string) (Lookup, error) {
	l := Lookup{Node: node}
	path := zkpath.Join(directory, node)
	var g errgroup.Group
	g.Go(func() (err error) {
		l.Stat, l.Exists, err = c.Exists(path)
		return ExplainRight(c, err, "READ", path)
	})
	var err error
	l.Listing, err = Children(c, directory, false)
	statErr := g.Wait() // before l is returned
	if IsMissing(err) {
		return Lookup{Node: node}, nil // the node may have been read before
	}
	return l, cmp.Or(ExplainRight(c, err, "READ", directory), statErr)
}
