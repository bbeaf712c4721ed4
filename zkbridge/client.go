package zkbridge

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/go-zookeeper/zk"
)

// client is all that the bridge asks of ZooKeeper. Its methods may be called from any
// goroutine. Those with a taker do not block; what one goroutine asks by them is sent, and
// answered, in order. The others block, until the end of the connection at the latest.
type client interface {
	// Multi sends a transaction.
	Multi(ops []any, then callback[[]zk.MultiResponse])
	// Delete gives one result, which is empty.
	Delete(path string, then callback[[]zk.MultiResponse])
	// CreateSequential makes an ephemeral sequential node. Its one result has the path and the
	// node's stat.
	CreateSequential(path string, data []byte, then callback[[]zk.MultiResponse])
	// List watches what is in the directory if it is to, and succeeds.
	List(directory string, watch bool, then callback[listing])
	// ReadDirectoryCzxid reads the directory's czxid, and no names.
	ReadDirectoryCzxid(directory string, then callback[listing])
	// GetW watches the node, unless that fails.
	GetW(path string, then callback[content])
	// SetWatches has what was watched over another connection watched over this one, before
	// it is used for anything else.
	SetWatches(over *conn, nodes, directories []string)

	// CreateEphemeral makes an ephemeral node of just this path, without data.
	CreateEphemeral(path string) error
	// CreateBeside makes an ephemeral node of just this path, while another is there.
	CreateBeside(path string, data []byte, other string) error
	// CreateContainer and CreatePersistent make a directory without data.
	CreateContainer(path string) error
	CreatePersistent(path string) error
	Get(path string) ([]byte, zk.Stat, error)
	// GetWatched and ExistsWatched set a watch, the latter on a missing node as well.
	GetWatched(path string) ([]byte, zk.Stat, error)
	ExistsWatched(path string) (bool, error)
	Children(path string) (listing, error)
	Exists(path string) (stat zk.Stat, exists bool, err error)
	// Ephemerals gives the nodes of the session whose paths begin so. That takes no right.
	Ephemerals(prefix string) (paths []string, err error)

	// withPublicRead is a client whose nodes all may read.
	withPublicRead() client
	// parent is the client of the directory above this one's root, which is a
	// chroot; nil if there is none.
	parent() client
}

// await waits for what ask gives to its taker.
func await[T any](ask func(callback[T])) (answer T, err error) {
	done := make(chan struct{})
	ask(func(a T, e error) {
		answer, err = a, e
		close(done)
	})
	<-done
	return answer, err
}

// multi waits for a transaction.
func multi(c client, ops ...any) ([]zk.MultiResponse, error) {
	return await(func(then callback[[]zk.MultiResponse]) { c.Multi(ops, then) })
}

// noData is empty data. nil would be another thing to Java clients, some of which
// do not expect it.
var noData = []byte{}

// anyVersion makes an operation unconditional.
const anyVersion = -1

// listing is what is in a directory, and the czxid of the directory itself: that of
// another directory of the same path is another.
type listing struct {
	children []string
	czxid    int64
}

// zkClient is the client on a link. What it makes has its ACL. All paths are below its
// root, and given without it.
type zkClient struct {
	link *sessionConn
	acl  []zk.ACL
	root chroot
}

// sendQuery sends a request and gives the answer as read to then.
func sendQuery[T any](l *sessionConn, request []byte, read func(*reader) (T, error), then callback[T]) {
	l.send(request, func(body []byte, err error) {
		var answer T
		if err == nil {
			r := reader{rest: body}
			if answer, err = read(&r); r.bad {
				var none T
				answer, err = none, errGarbled
			}
		}
		then(answer, err)
	})
	recycle(request)
}

// waitQuery is query for those who wait.
func waitQuery[T any](l *sessionConn, request []byte, read func(*reader) (T, error)) (T, error) {
	return await(func(then callback[T]) { sendQuery(l, request, read, then) })
}

func (c zkClient) Multi(ops []any, then callback[[]zk.MultiResponse]) {
	request, err := encodeMulti(c.root, ops)
	if err != nil {
		then(nil, err)
		return
	}
	sendQuery(c.link, request, func(r *reader) ([]zk.MultiResponse, error) { return r.results(c.root, len(ops)) }, then)
}

func (c zkClient) Delete(path string, then callback[[]zk.MultiResponse]) {
	sendQuery(c.link, encodeDelete(c.root.prepend(path)), readDeleted, then)
}

func readDeleted(*reader) ([]zk.MultiResponse, error) { return deleted, nil }

var deleted = make([]zk.MultiResponse, 1)

func (c zkClient) List(directory string, watch bool, then callback[listing]) {
	sendQuery(c.link, encodeRead(opChildren, c.root.prepend(directory), watch), readListing, then)
}

func (c zkClient) ReadDirectoryCzxid(directory string, then callback[listing]) {
	sendQuery(c.link, encodeRead(opExists, c.root.prepend(directory), false),
		func(r *reader) (listing, error) { return listing{czxid: r.stat().Czxid}, nil }, then)
}

func readListing(r *reader) (listing, error) { return listing{r.texts(), r.stat().Czxid}, nil }

// content is what is in a node.
type content struct {
	data []byte
	stat zk.Stat
}

func readContent(r *reader) (content, error) { return content{r.data(), r.stat()}, nil }

func (c zkClient) GetW(path string, then callback[content]) {
	sendQuery(c.link, encodeRead(opGetData, c.root.prepend(path), true), readContent, then)
}

func (c zkClient) SetWatches(over *conn, nodes, directories []string) {
	requests := encodeSetWatches(c.link.eventsZxid.Load(), c.root.prependAll(nodes), c.root.prependAll(directories))
	over.rewatching.Store(int32(len(requests)))
	for _, request := range requests {
		over.send(request, func(_ []byte, err error) {
			if err == nil {
				over.rewatching.Add(-1)
				return
			}
			if !errors.Is(err, zk.ErrConnectionClosed) && !errors.Is(err, zk.ErrNoServer) {
				c.link.cfg.log.Error("ZooKeeper does not set watches again: another connection is tried", "error", err)
				go over.Close() // nobody would be woken
			}
		})
	}
}

func (c zkClient) CreateSequential(path string, data []byte, then callback[[]zk.MultiResponse]) {
	sendQuery(c.link, encodeCreate(opCreate2, c.root.prepend(path), data, c.acl, zk.FlagEphemeralSequential),
		func(r *reader) ([]zk.MultiResponse, error) {
			made, stat := c.root.strip(r.text()), r.stat()
			stat.Mzxid = stat.Czxid
			return []zk.MultiResponse{{String: made, Stat: &stat}}, nil
		}, then)
}

func (c zkClient) CreateEphemeral(path string) error {
	return c.create(opCreate, path, noData, zk.FlagEphemeral)
}

func (c zkClient) create(op int32, path string, data []byte, flags int32) error {
	made, err := waitQuery(c.link, encodeCreate(op, c.root.prepend(path), data, c.acl, flags),
		func(r *reader) (string, error) { return r.text(), nil })
	if err == nil && path == "/" {
		c.link.cfg.log.Info("the chroot was missing and is made", "path", made)
	}
	return err
}

func (c zkClient) CreateBeside(path string, data []byte, other string) error {
	results, err := multi(c, &zk.CheckVersionRequest{Path: other, Version: anyVersion},
		&zk.CreateRequest{Path: path, Data: data, Acl: c.acl, Flags: zk.FlagEphemeral})
	if _, cause := firstFailedOp(results); cause != nil {
		return cause
	}
	return err
}

// CreateContainer is a request of its own: none of the others makes containers.
func (c zkClient) CreateContainer(path string) error {
	containers := &c.link.cfg.containers
	if containers.unknown.Load() {
		return c.CreatePersistent(path)
	}
	err := c.create(opCreateContainer, path, noData, zk.FlagContainer)
	if containers.onResult(c.link.epoch, err) {
		c.link.cfg.log.Warn("the server hangs up on createContainer: directories are persistent nodes from now on, which stay when they are empty",
			"times", maxHangups)
	}
	return err
}

func (c zkClient) CreatePersistent(path string) error {
	return c.create(opCreate, path, noData, zk.FlagPersistent)
}

func (c zkClient) Get(path string) ([]byte, zk.Stat, error) { return c.get(path, false) }

func (c zkClient) GetWatched(path string) ([]byte, zk.Stat, error) { return c.get(path, true) }

func (c zkClient) get(path string, watch bool) ([]byte, zk.Stat, error) {
	n, err := waitQuery(c.link, encodeRead(opGetData, c.root.prepend(path), watch), readContent)
	return n.data, n.stat, err
}

func (c zkClient) Children(path string) (listing, error) {
	return await(func(then callback[listing]) { c.List(path, false, then) })
}

func (c zkClient) Exists(path string) (zk.Stat, bool, error) { return c.exists(path, false) }

func (c zkClient) ExistsWatched(path string) (bool, error) {
	_, exists, err := c.exists(path, true)
	return exists, err
}

func (c zkClient) exists(path string, watch bool) (zk.Stat, bool, error) {
	stat, err := waitQuery(c.link, encodeRead(opExists, c.root.prepend(path), watch),
		func(r *reader) (zk.Stat, error) { return r.stat(), nil })
	if isMissing(err) {
		return zk.Stat{}, false, nil
	}
	return stat, err == nil, err
}

func (c zkClient) Ephemerals(prefix string) ([]string, error) {
	ephemerals := &c.link.cfg.ephemerals
	if ephemerals.unknown.Load() {
		return nil, serverError(codeUnimplemented)
	}
	prefix = c.root.prepend(prefix)
	paths, err := waitQuery(c.link, appendText(newMessage(opGetEphemerals, opBytes+len(prefix)), prefix),
		func(r *reader) ([]string, error) { return r.texts(), nil })
	ephemerals.onResult(c.link.epoch, err)
	for i := range paths {
		paths[i] = c.root.strip(paths[i])
	}
	return paths, err
}

func (c zkClient) withPublicRead() client {
	c.acl = withPublicRead(c.acl)
	return c
}

func (c zkClient) parent() client {
	if c.root == "" {
		return nil
	}
	parent, _ := splitPath(string(c.root))
	c.root = chroot(strings.TrimSuffix(parent, "/"))
	return c
}

// makeDirectory makes path and what is missing above it. It reports whether path
// was made by this call.
func makeDirectory(c client, path string) (bool, error) {
	err := makeNode(c, path)
	if isMissing(err) {
		if err := makeParent(c, path); err != nil {
			return false, err
		}
		err = makeNode(c, path)
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, zk.ErrNodeExists):
		return false, nil
	}
	return false, fmt.Errorf("make directory %s: %w", path, requiredRight{right: "CREATE"}.of(path).explain(err))
}

func makeParent(c client, path string) error {
	parent, _ := splitPath(path)
	if path == "/" {
		if c = c.parent(); c == nil {
			return zk.ErrNoNode
		}
	}
	_, err := makeDirectory(c, parent)
	return err
}

// makeNode makes a container, which goes away when its last lock has gone, or a
// persistent node where the server will have no containers.
func makeNode(c client, path string) error {
	err := c.CreateContainer(path)
	if err == nil || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	if o, _ := classify(err); o != refused {
		return err
	}
	return c.CreatePersistent(path)
}

// zkLogger passes what go-zookeeper logs on, at debug level: the bridge itself
// tells what matters.
type zkLogger struct {
	log   *slog.Logger
	epoch uint64
}

func (l zkLogger) Printf(format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...), "epoch", l.epoch)
}
