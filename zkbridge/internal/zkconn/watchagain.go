package zkconn

import (
	"errors"

	"github.com/go-zookeeper/zk"
)

// maxWatchReads is how many reads of watchAgain are unanswered at most: a server stops reading at 1000
// requests.
const maxWatchReads = 64

// watchAgain sets watches by reads, for a server that does not know setWatches, and posts the events
// that it would send at once. Other requests may go between: the zxid since which events are missing
// stays as it is until all reads are answered.
func (c zkClient) watchAgain(over *Conn, nodes, directories []string) {
	since := c.session.eventsZxid.Load()
	over.rewatching.Store(int32(len(nodes) + len(directories)))
	slots := make(chan struct{}, maxWatchReads)
	read := func(op int32, path string, changed zk.EventType, lastChange func(*reader) int64) {
		path = c.root.prepend(path)
		slots <- struct{}{}
		over.send(encodeRead(op, path, true), func(body []byte, err error) {
			<-slots
			r := reader{rest: body}
			switch {
			case IsMissing(err):
				c.session.onWatchEvent(zk.EventNodeDeleted, path)
			case errors.Is(err, zk.ErrConnectionClosed), errors.Is(err, zk.ErrNoServer):
				return // the next connection begins anew
			case err != nil || lastChange(&r) > since || r.bad: // a reader that asks again sees the error
				c.session.onWatchEvent(changed, path)
			}
			over.rewatching.Add(-1)
		})
	}
	go func() {
		for _, path := range nodes {
			read(opGetData, path, zk.EventNodeDataChanged, func(r *reader) int64 { r.data(); return r.stat().Mzxid })
		}
		for _, path := range directories {
			read(opChildren, path, zk.EventNodeChildrenChanged, func(r *reader) int64 { r.texts(); return r.stat().Pzxid })
		}
	}()
}
