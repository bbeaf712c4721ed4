package zkbridge

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-zookeeper/zk"
)

// client is all that the bridge uses of a ZooKeeper client. Its methods block,
// until Close at the latest, and may be called from any goroutine.
type client interface {
	Multi(ops ...any) ([]zk.MultiResponse, error)
	// Create makes an ephemeral sequential node and gives its path.
	Create(path string, data []byte) (string, error)
	// CreateContainer and CreatePersistent make a directory without data.
	CreateContainer(path string) error
	CreatePersistent(path string) error
	Get(path string) ([]byte, error)
	// GetW watches the node, unless that fails.
	GetW(path string) error
	Children(path string) (listing, error)
	Exists(path string) (czxid int64, exists bool, err error)
	Delete(path string) error
	// Close ends the session. It takes up to three seconds if no server answers.
	Close()
}

var openACL = zk.WorldACL(zk.PermAll)

// noData is empty data. nil would be another thing to Java clients, some of which
// do not expect it.
var noData = []byte{}

// anyVersion makes an operation unconditional.
const anyVersion = -1

// createOp is the operation in a multi that Create is alone.
func createOp(path string, data []byte) *zk.CreateRequest {
	return &zk.CreateRequest{Path: path, Data: data, Acl: openACL, Flags: zk.FlagEphemeralSequential}
}

// listing is what is in a directory, and the czxid of the directory itself: that of
// another directory of the same path is another.
type listing struct {
	children []string
	czxid    int64
}

// zkClient is the client on go-zookeeper.
type zkClient struct{ *zk.Conn }

func (c zkClient) Create(path string, data []byte) (string, error) {
	return c.Conn.Create(path, data, zk.FlagEphemeralSequential, openACL)
}

// CreateContainer is a call of its own: asked for a container, Conn.Create makes
// a persistent node without a word, and a multi makes one and returns an error.
func (c zkClient) CreateContainer(path string) error {
	_, err := c.Conn.CreateContainer(path, noData, zk.FlagContainer, openACL)
	return err
}

func (c zkClient) CreatePersistent(path string) error {
	_, err := c.Conn.Create(path, noData, zk.FlagPersistent, openACL)
	return err
}

func (c zkClient) Get(path string) ([]byte, error) {
	data, _, err := c.Conn.Get(path)
	return data, err
}

// GetW leaves the watch's own channel alone: events come through the callback.
func (c zkClient) GetW(path string) error {
	_, _, _, err := c.Conn.GetW(path)
	return err
}

func (c zkClient) Children(path string) (listing, error) {
	children, stat, err := c.Conn.Children(path)
	if err != nil {
		return listing{}, err
	}
	return listing{children, stat.Czxid}, nil
}

func (c zkClient) Exists(path string) (int64, bool, error) {
	exists, stat, err := c.Conn.Exists(path)
	if err != nil {
		return 0, false, err
	}
	return stat.Czxid, exists, nil
}

func (c zkClient) Delete(path string) error { return c.Conn.Delete(path, anyVersion) }

// makeDirectory makes path and what is missing above it. It reports whether path
// was made by this call.
func makeDirectory(c client, path string) (bool, error) {
	err := makeNode(c, path)
	if errors.Is(err, zk.ErrNoNode) && path != "/" {
		parent, _ := splitPath(path)
		if _, err := makeDirectory(c, parent); err != nil {
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
	return false, fmt.Errorf("make directory %s: %w", path, err)
}

// makeNode makes a container, which goes away when its last lock has gone, or a
// persistent node where the server will have no containers.
func makeNode(c client, path string) error {
	err := c.CreateContainer(path)
	if err == nil || errors.Is(err, zk.ErrNodeExists) || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrNoAuth) {
		return err
	}
	if code, unnamed := unnamedCode(err); !unnamed || code != codeUnimplemented {
		if o, _ := judge(err); o != refused {
			return err
		}
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
