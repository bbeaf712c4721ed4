package group

import (
	"testing"

	"github.com/actorlock/actorlock/actors/internal/inspection"
	"github.com/actorlock/actorlock/actors/internal/partition"
	"github.com/actorlock/actorlock/actors/queue"
)

// A follower that first reads a member's node while a revocation has overwritten it knows the member once
// the data are restored.
func TestRestoredRecord(t *testing.T) {
	f := NewFollower(nil, "/group", 4)
	record := partition.Record{Partitions: 4, Member: partition.FormatID(7)}
	for members, data := range [][]byte{[]byte(queue.RevokeData), record.Encode()} {
		f.onRead(inspection.Snapshot{Contenders: []inspection.Contender{{Node: "/group/members/_c_1-__READ__0000000001", Data: data}}}, nil)
		if v := f.state.Load().View; len(v.Members) != members {
			t.Errorf("%q: members %v", data, v.Members)
		}
	}
}
