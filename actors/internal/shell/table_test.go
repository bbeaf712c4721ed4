package shell

import (
	"context"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/host"
	"github.com/actorlock/actorlock/messages"
)

// acquisition is a request of Go code that ignores its answers.
type acquisition struct{ id requests.ID }

func (*acquisition) Tell(any)                            {}
func (a *acquisition) RequestID() *requests.ID           { return &a.id }
func (*acquisition) OnGranted(*messages.Granted, uint32) {}
func (*acquisition) Context() context.Context            { return nil }
func (*acquisition) ArmLeakDetection(time.Time)          {}
func (*acquisition) Owner() string                       { return "" }

// The table finds a request by its sender, or by its owner, until it is removed; then it keeps
// nothing of it.
func TestTableForgets(t *testing.T) {
	var table requestTable
	mine, other := &acquisition{}, &host.Ref{}
	byGoCode, byActor, byOwner := table.new(), table.new(), table.new()
	byGoCode.owner = mine
	actorKey, ownerKey := senderOf(other).key("", 7), senderOf(nil).key("me", 7)
	byActor.key, byOwner.key = &actorKey, &ownerKey
	for _, r := range []*Request{byGoCode, byActor, byOwner} {
		table.addID(r)
	}
	check := func(goCode, actor, owner *Request) {
		t.Helper()
		if table.find(senderOf(mine), "", 0) != goCode || table.find(senderOf(other), "", 7) != actor || table.find(senderOf(nil), "me", 7) != owner || table.find(senderOf(other), "", 8) != nil {
			t.Error("a request is not found, or another one is")
		}
	}
	check(byGoCode, byActor, byOwner)
	table.remove(byActor)
	check(byGoCode, nil, byOwner)
	table.remove(byGoCode)
	table.remove(byOwner)
	check(nil, nil, nil)
	if len(table.ids) > 0 || table.requests.Len() > 0 || mine.id != 0 {
		t.Errorf("left: %v, %d, %d", table.ids, table.requests.Len(), mine.id)
	}
	table.releaseMemory()
	check(nil, nil, nil)
}
