package zktest

import (
	"encoding/binary"
	"fmt"
	"hash/adler32"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-zookeeper/zk"
)

// SetCreateCount sets the number of children that a node has had, which is the next sequence number
// below it, for tests near its overflow at 2^31-1. A real server must belong to the test and be a
// single one: SetCreateCount stops it, writes the number into its transaction log, and starts it
// again, so that clients lose their connection for about a second.
func (s *Server) SetCreateCount(t testing.TB, path string, n int32) {
	t.Helper()
	if !s.Real() {
		if !s.embedded.SetCreateCount(path, n) {
			t.Fatalf("zktest: no node %s to set the create count of", path)
		}
		return
	}
	s.mustBePrivate(t, "SetCreateCount")
	if len(s.nodes) != 1 {
		t.Fatalf("zktest: SetCreateCount on an ensemble of %d servers", len(s.nodes))
	}
	zxid, err := s.touchChild(path)
	if err != nil {
		t.Fatalf("zktest: set the create count of %s: %v", path, err)
	}
	s.Stop(t)
	if err := patchLogs(s.nodes[0].data(), zxid, n); err != nil {
		t.Fatalf("zktest: set the create count of %s: %v", path, err)
	}
	s.Start(t)
}

// touchChild creates a child and deletes it, and returns its czxid.
func (s *Server) touchChild(path string) (zxid int64, err error) {
	c, err := dial(s.addr, clientSession, s.Dial)
	if err != nil {
		return 0, err
	}
	defer c.close()
	child := path + "/zktest-create-count"
	if _, err := c.Create(child, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		return 0, err
	}
	_, stat, err := c.Exists(child)
	if err != nil {
		return 0, err
	}
	return stat.Czxid, c.Delete(child, -1)
}

// patchLogs finds a create in the transaction logs, and sets the count of its parent's children.
func patchLogs(data string, zxid int64, count int32) error {
	files, err := filepath.Glob(filepath.Join(data, "version-2", "log.*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		log, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if patchCreate(log, zxid, count) {
			return os.WriteFile(file, log, 0o644)
		}
	}
	return fmt.Errorf("transaction %#x is in none of %q", zxid, files)
}

// patchCreate sets the count in one log, and reports whether the create is there. A log has a
// header of 16 bytes, and then for each transaction its checksum, its length, the transaction, and
// a byte 'B'.
func patchCreate(log []byte, zxid int64, count int32) bool {
	for at := 16; at+12 <= len(log); {
		sum, size := log[at:at+8], int(binary.BigEndian.Uint32(log[at+8:]))
		at += 12
		if size == 0 || at+size+1 > len(log) {
			return false // the rest of the file is not used
		}
		txn := log[at : at+size]
		at += size + 1
		if int64(binary.BigEndian.Uint64(txn[12:])) != zxid {
			continue
		}
		binary.BigEndian.PutUint32(parentCount(txn), uint32(count))
		binary.BigEndian.PutUint64(sum, uint64(adler32.Checksum(txn)))
		return true
	}
	return false
}

// parentCount returns the field of a create that follows a header of 32 bytes, path, data, ACL, and
// the flag for ephemeral nodes.
func parentCount(txn []byte) []byte {
	at := 32
	number := func() int { at += 4; return int(int32(binary.BigEndian.Uint32(txn[at-4:]))) }
	skip := func() { at += max(number(), 0) }
	skip() // path
	skip() // data
	for range number() {
		number() // permissions
		skip()   // scheme
		skip()   // id
	}
	at++ // ephemeral
	return txn[at : at+4]
}
