package lock

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
func (*acquisition) IsElsewhere() bool                   { return false }
func (*acquisition) ArmLeakDetection(time.Time)          {}
func (*acquisition) Owner() string                       { return "" }

// The table finds a request by its sender or by its owner, until the request is removed. It keeps
// nothing of removed requests.
func TestRequestTable(t *testing.T) {
	var table requestTable
	caller, actor := &acquisition{}, &host.Ref{}
	byGoCode, byActor, byOwner := table.new(), table.new(), table.new()
	byGoCode.owner = caller
	actorKey, ownerKey := senderOf(actor).key("", 7), senderOf(nil).key("me", 7)
	byActor.key, byOwner.key = &actorKey, &ownerKey
	for _, r := range []*Request{byGoCode, byActor, byOwner} {
		table.addID(r)
	}
	wantFound := func(ofGoCode, ofActor, ofOwner *Request) {
		t.Helper()
		if table.find(senderOf(caller), "", 0) != ofGoCode || table.find(senderOf(actor), "", 7) != ofActor || table.find(senderOf(nil), "me", 7) != ofOwner || table.find(senderOf(actor), "", 8) != nil {
			t.Error("a request is not found, or another one is")
		}
	}
	wantFound(byGoCode, byActor, byOwner)
	table.remove(byActor)
	wantFound(byGoCode, nil, byOwner)
	table.remove(byGoCode)
	table.remove(byOwner)
	wantFound(nil, nil, nil)
	if len(table.ids) > 0 || table.requests.Len() > 0 || caller.id != 0 {
		t.Errorf("left: %v, %d, %d", table.ids, table.requests.Len(), caller.id)
	}
	table.releaseMemory()
	wantFound(nil, nil, nil)
}
