package recipes

import (
	"github.com/actorlock/actorlock/actors/internal/lockqueue"
	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/gen/ask"
	"github.com/actorlock/actorlock/messages"
)

// The answers of the bridge, and its news of watched nodes, become events of the state machine.

// of returns the directory that has asked, and its serial.
func (ds *directories) of(id uint64) (d *directory, serial uint64) {
	if id&1 != 0 && ds.leases != nil {
		return ds.leases, id >> 1
	}
	return &ds.queue, id >> 1
}

// Created implements messages.BridgeClientHandler.
func (ds *directories) Created(_ ask.Recipient, msg *messages.Created) {
	d, serial := ds.of(msg.Id)
	feed(d, lockqueue.Created{Serial: serial, Node: msg.Node,
		Token:    requests.Token{Generation: msg.Generation, Czxid: msg.Czxid, Step: msg.Step},
		Children: msg.Children, DirectoryCzxid: msg.DirectoryCzxid, SameDirectory: msg.SameDirectory, Recent: msg.Recent})
}

// Wake implements messages.BridgeClientHandler.
func (ds *directories) Wake(_ ask.Recipient, msg *messages.Wake) {
	d := &ds.queue
	if ds.leases != nil && msg.Directory == ds.leases.path {
		d = ds.leases
	}
	if msg.Deleted {
		d.noteGone(msg.Node)
	}
	feed(d, lockqueue.Wake{Epoch: msg.Epoch, Node: msg.Node, Deleted: msg.Deleted})
}

// Listed implements messages.BridgeClientHandler.
func (ds *directories) Listed(_ ask.Recipient, msg *messages.Listed) {
	d, serial := ds.of(msg.Id)
	feed(d, lockqueue.Listed{Serial: serial, Children: msg.Children, DirectoryCzxid: msg.DirectoryCzxid})
}

// Watched implements messages.BridgeClientHandler.
func (ds *directories) Watched(_ ask.Recipient, msg *messages.Watched) {
	d, serial := ds.of(msg.Id)
	for _, node := range msg.Gone {
		d.noteGone(node)
	}
	d.reportPersistent(msg.Persistent)
	feed(d, lockqueue.Watched{Serial: serial, Gone: msg.Gone, Data: msg.Data})
}

// NodeReleased implements messages.BridgeClientHandler.
func (ds *directories) NodeReleased(_ ask.Recipient, msg *messages.NodeReleased) {
	d, serial := ds.of(msg.Id)
	feed(d, lockqueue.Deleted{Serial: serial, Missing: msg.Missing})
}

// Failed implements messages.BridgeClientHandler.
func (ds *directories) Failed(_ ask.Recipient, msg *messages.Failed) {
	d, serial := ds.of(msg.Id)
	ds.Detail = msg.Detail
	if ds.cleaningUp {
		d.noteUndeleted(serial, msg.Reason)
	}
	feed(d, lockqueue.Failed{Serial: serial, Reason: requests.Reason(msg.Reason)})
}

// Transacted implements messages.BridgeClientHandler.
func (ds *directories) Transacted(_ ask.Recipient, msg *messages.Transacted) {
	d, serial := ds.of(msg.Id)
	feed(d, lockqueue.Transacted{Serial: serial, Done: msg.Outcome == messages.Transacted_DONE, Op: msg.Op})
}
