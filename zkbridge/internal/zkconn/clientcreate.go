package zkconn

import "github.com/go-zookeeper/zk"

// The creates of a Client.

func (c zkClient) CreateSequential(path string, data []byte, then Callback[[]zk.MultiResponse]) {
	op := int32(opCreate2)
	if !c.session.cfg.knows(optCreate2) {
		op = opCreate // the answer has no stat
	}
	sendQuery(c.session, encodeCreate(op, c.root.prepend(path), data, c.acl, zk.FlagEphemeralSequential),
		func(r *reader) ([]zk.MultiResponse, error) {
			result := zk.MultiResponse{String: r.made(c.root, &Op{Path: path, Flags: zk.FlagEphemeralSequential})}
			if op == opCreate2 {
				stat := r.stat()
				stat.Mzxid = stat.Czxid
				result.Stat = &stat
			}
			return []zk.MultiResponse{result}, nil
		}, then)
}

func (c zkClient) Create(path string, flags int32) error { return c.create(opCreate, path, flags) }

func (c zkClient) create(op int32, path string, flags int32) error {
	if path == "/" && c.session.cfg.RequireChroot {
		return c.rootError()
	}
	_, err := waitQuery(c.session, encodeCreate(op, c.root.prepend(path), NoData, c.acl, flags),
		func(r *reader) (string, error) { return r.made(c.root, &Op{Path: path, Flags: flags}), nil })
	if err == nil && path == "/" {
		c.session.cfg.Log.Warn("the chroot was missing and is made: check its name, because locks in another chroot do not exclude these", "path", c.root.prepend(path))
	}
	return err
}

// rootError returns the error of a create of the root that is not sent: zk.ErrNodeExists, as
// ZooKeeper's, or ErrNoChroot.
func (c zkClient) rootError() error {
	switch _, exists, err := c.Exists("/"); {
	case exists:
		return zk.ErrNodeExists
	case err != nil:
		return err
	}
	return ErrNoChroot
}

func (c zkClient) CreateGuarded(path string, data []byte, guard string) error {
	results, err := Multi(c, CheckExists(guard), Op{Kind: OpCreate, Path: path, Data: data, ACL: c.acl, Flags: zk.FlagEphemeral})
	if _, cause := FirstFailedOp(results); cause != nil {
		return cause
	}
	return err
}

// CreateContainer sends a request of its own type: no other creates containers. It creates a
// persistent node if servers do not know the request.
func (c zkClient) CreateContainer(path string) error {
	if !c.session.cfg.knowsContainers() {
		return c.Create(path, zk.FlagPersistent)
	}
	err := c.create(opCreateContainer, path, zk.FlagContainer)
	c.session.cfg.noteResult(optContainer, err)
	return err
}
