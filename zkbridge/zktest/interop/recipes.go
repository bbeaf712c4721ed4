package interop

import "strconv"

// Object is an object of the other process that is no lock. It reports events, and some have
// requests.
type Object struct {
	peer   *Peer
	name   string
	events <-chan Event
}

// Events returns a channel of the object's events, from the first one on.
func (o *Object) Events() <-chan Event { return o.events }

// watch makes an object, and keeps its events from the first one on.
func (p *Peer) watch(kind string, args ...string) *Object {
	p.t.Helper()
	name := p.name(kind)
	events := p.listen(name)
	p.must(name, name, kind, args...)
	return &Object{p, name, events}
}

// Count is Curator's SharedCount. An event of kind COUNT has the new value for its path.
type Count struct{ *Object }

// SharedCount starts a SharedCount. The seed is its value if it has none yet.
func (c *CuratorClient) SharedCount(path string, seed int) Count {
	c.t.Helper()
	return Count{c.watch("count", path, strconv.Itoa(seed))}
}

// Get returns the value that the object has read.
func (o Count) Get() int {
	o.peer.t.Helper()
	n, err := strconv.Atoi(o.peer.must(o.name, o.name, "get")[0])
	if err != nil {
		o.peer.t.Fatalf("interop: %v", err)
	}
	return n
}

// TryAdd adds n to the value that the object has read. It returns false if another client has
// changed the value.
func (o Count) TryAdd(n int) bool {
	o.peer.t.Helper()
	return o.peer.must(o.name, o.name, "add", strconv.Itoa(n))[0] == "true"
}

// PersistentNode starts a PersistentNode, which creates its ephemeral node again after each
// deletion, and waits until the node exists. closeNode deletes it.
func (c *CuratorClient) PersistentNode(path, data string) (closeNode func()) {
	c.t.Helper()
	name := c.object("persistent", path, data)
	return func() { c.must(name, name, "close") }
}

// Cache is one of Curator's caches of a subtree, with its events.
type Cache struct{ *Object }

// TreeCache starts a TreeCache.
func (c *CuratorClient) TreeCache(path string) Cache {
	c.t.Helper()
	return Cache{c.watch("tree", path)}
}

// CuratorCache starts a CuratorCache.
func (c *CuratorClient) CuratorCache(path string) Cache {
	c.t.Helper()
	return Cache{c.watch("cache", path)}
}

// List returns the content of the cache: path=data, in the order of paths.
func (o Cache) List() []string {
	o.peer.t.Helper()
	return o.peer.must(o.name, o.name, "list")
}

// DataWatch starts a DataWatch. Its events are of kind DATA, the first with the present data.
func (k *KazooClient) DataWatch(path string) *Object {
	k.t.Helper()
	return k.watch("data", path)
}

// ChildrenWatch starts a ChildrenWatch. Its events are of kind CHILDREN, with the names in order,
// separated by spaces.
func (k *KazooClient) ChildrenWatch(path string) *Object {
	k.t.Helper()
	return k.watch("children", path)
}

// Transaction commits operations. Each is a verb (create, set, delete or check), a path, and data
// or the version to check. Transaction returns "ok" or the name of kazoo's exception for each.
func (k *KazooClient) Transaction(ops ...[3]string) []string {
	k.t.Helper()
	var args []string
	for _, op := range ops {
		args = append(args, op[:]...)
	}
	return k.must("client", "client", "transaction", args...)
}
