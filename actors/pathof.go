package actors

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/actorlock/actorlock/actors/queue"
	"github.com/actorlock/actorlock/zkbridge"
	"github.com/actorlock/actorlock/zkbridge/zkpath"
)

// PathOf returns the path of the lock of a key, in a directory of such locks: it is the way to have
// one lock per order, user or file. The directory is a path as for a lock, or "/". The key may be
// any text, also one with slashes, control characters or invalid UTF-8, or none.
//
// Different keys have different paths. Letters, digits and most signs stay as they are; the bytes
// of others are written as %2F is for a slash, so that [net/url.PathUnescape] returns the key of a
// name. So is the last byte of a name that means something to ZooKeeper or to the recipes, as in
// ".", "locks", "a-__held__" or "a-lock-0000000001". The name of the empty key is "%".
//
// The lock's path may be as long as an operation of the bridge allows; a key takes up to three times
// its length. A path that is too long is refused at the first request, as ErrInvalid. So is one in
// an unacceptable directory, such as "".
func PathOf(dir, key string) string {
	if dir == "" { // which is not "/"
		return nodeOf(key)
	}
	return zkpath.Join(dir, nodeOf(key))
}

func nodeOf(key string) string {
	if key == "" {
		return "%"
	}
	var b strings.Builder
	for rest := key; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if r == '%' || !unicode.IsPrint(r) || zkpath.CheckName("a"+rest[:size]) != nil {
			escape(&b, rest[:size])
		} else {
			b.WriteString(rest[:size])
		}
		rest = rest[size:]
	}
	name := b.String()
	if last := len(name) - 1; hasMeaning(name) {
		b.Reset()
		b.WriteString(name[:last])
		escape(&b, name[last:])
	}
	return b.String()
}

func escape(b *strings.Builder, text string) {
	for _, c := range []byte(text) {
		fmt.Fprintf(b, "%%%02X", c)
	}
}

// namesWithMeaning are "." and "..", ZooKeeper's own directory and the bridge's, and what marks a
// semaphore's directory. suffixesWithMeaning end what stands beside the directory of another key.
var namesWithMeaning = []string{".", "..", "zookeeper", path.Base(zkbridge.GenerationDirectory),
	path.Base(queue.RequestQueueSuffix), path.Base(queue.LeasesSuffix)}

var suffixesWithMeaning = []string{queue.HeldMarkerSuffix, queue.KazooRequestQueueSuffix}

// hasMeaning reports whether a name is another thing than a lock's directory to ZooKeeper or to a
// reader of locks. All these names end with a byte that no escape has made.
func hasMeaning(name string) bool {
	return slices.Contains(namesWithMeaning, name) || queue.IsContender(name) ||
		slices.ContainsFunc(suffixesWithMeaning, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}
