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

// SetCreateCount presets how many children a node has had, which is the next sequence number below it, to get near its
// overflow at 2^31-1. A real server must belong to the test and be a single one: it is stopped, the number is written
// into its transaction log, and it is started again, so that clients lose their connection for about a second.
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

// touchChild creates a child and deletes it, and returns the number of the transaction that created it.
func (s *Server) touchChild(path string) (zxid int64, err error) {
	c, err := dial(s.addr, clientTimeout, s.Dial)
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

// patchLogs finds a create in the transaction logs and changes the count of its parent's children there.
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

// A log has a header of 16 bytes, and then for each transaction its checksum, its length, itself, and a byte 'B'.
func patchCreate(log []byte, zxid int64, count int32) bool {
	for at := 16; at+12 <= len(log); {
		sum, size := log[at:at+8], int(binary.BigEndian.Uint32(log[at+8:]))
		at += 12
		if size == 0 || at+size+1 > len(log) {
			return false // the rest is space
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

// parentCount finds the field of a create, behind a header of 32 bytes, path, data, ACL, and whether it is ephemeral.
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
