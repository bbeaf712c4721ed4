package zkconn

import (
	"cmp"
	"math"
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
	if !c.session.cfg.knows(optMultiRead) || !c.session.cfg.knows(optSetWatches) {
		then(ServerError(CodeUnimplemented))
		return
	}
	paths := make([]string, len(reads))
	for i := range reads {
		paths[i] = reads[i].Path
	}
	var watchErr error // the answers come in order
	c.WatchSince(paths, math.MaxInt64, func(err error) { watchErr = err })
	c.ReadNodes(reads, func(err error) { then(cmp.Or(watchErr, err)) })
}

func (c zkClient) ReadNodes(reads []NodeRead, then func(error)) {
	if !c.session.cfg.knows(optMultiRead) {
		then(ServerError(CodeUnimplemented))
		return
	}
	sendQuery(c.session, encodeNodeReads(c.root, reads), func(r *reader) (none struct{}, _ error) {
		for i := range reads {
			reads[i].Content, _, reads[i].Err = r.part(opGetData)
		}
		return none, nil
	}, func(_ struct{}, err error) {
		c.session.cfg.noteResult(optMultiRead, err)
		then(err)
	})
}

func encodeNodeReads(root Chroot, reads []NodeRead) []byte {
	b := newMessage(opMultiRead, OpBytes*(1+2*len(reads)))
	for i := range reads {
		b = appendBool(appendText(appendOpHeader(b, opGetData, false), root.prepend(reads[i].Path)), false)
	}
	return appendOpHeader(b, -1, true)
}
