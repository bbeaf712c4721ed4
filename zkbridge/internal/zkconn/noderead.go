package zkconn

import (
	"cmp"
	"math"

	"github.com/go-zookeeper/zk"
)

// NodeRead is a read of a node, and its result: the Content or an Err.
type NodeRead struct {
	Path    string
	Content Content
	Err     error
}

// WatchNodes sends the watches first, so that no change is missed: a multiRead sets none. A zxid that no
// node has keeps the server from an event for what the read shows anyway.
func (c zkClient) WatchNodes(reads []NodeRead, then func(error)) {
	over := c.session.Active()
	switch {
	case over == nil:
		then(zk.ErrNoServer)
		return
	case !c.session.cfg.knows(optMultiRead) || !c.session.cfg.knows(optSetWatches):
		then(ServerError(CodeUnimplemented))
		return
	}
	paths := c.pathsOf(reads)
	var watchErr error // the answers come in order
	for _, request := range encodeSetWatches(math.MaxInt64, paths, nil) {
		over.send(request, func(_ []byte, err error) {
			c.session.cfg.noteResult(optSetWatches, err)
			watchErr = cmp.Or(watchErr, err)
		})
	}
	over.send(encodeNodeReads(paths), func(body []byte, err error) {
		c.session.cfg.noteResult(optMultiRead, err)
		r := reader{rest: body, newest: c.session.Zxid()}
		if err == nil && !r.contents(reads) {
			err = errGarbled
		}
		then(cmp.Or(watchErr, err))
	})
}

func (c zkClient) ReadNodes(reads []NodeRead, then func(error)) {
	if !c.session.cfg.knows(optMultiRead) {
		then(ServerError(CodeUnimplemented))
		return
	}
	sendQuery(c.session, encodeNodeReads(c.pathsOf(reads)), func(r *reader) (none struct{}, _ error) {
		r.contents(reads)
		return none, nil
	}, func(_ struct{}, err error) {
		c.session.cfg.noteResult(optMultiRead, err)
		then(err)
	})
}

func (c zkClient) pathsOf(reads []NodeRead) []string {
	paths := make([]string, len(reads))
	for i := range reads {
		paths[i] = c.root.prepend(reads[i].Path)
	}
	return paths
}

func encodeNodeReads(paths []string) []byte {
	b := newMessage(opMultiRead, OpBytes*(1+2*len(paths)))
	for _, path := range paths {
		b = appendBool(appendText(appendOpHeader(b, opGetData, false), path), false)
	}
	return appendOpHeader(b, -1, true)
}

// contents writes the results of a multiRead of nodes into reads, and reports whether it could read all.
func (r *reader) contents(reads []NodeRead) bool {
	for i := range reads {
		reads[i].Content, _, reads[i].Err = r.part(opGetData)
	}
	return !r.bad
}
