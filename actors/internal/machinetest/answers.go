package machinetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// answers holds for each event that is an answer the effects that it may answer.
var answers = map[string][]string{
	"created":      {"create"},
	"listed":       {"list"},
	"watched":      {"watch", "read-marker"},
	"deleted":      {"delete"},
	"transacted":   {"delete-directory", "create-marker", "replace-marker", "delete-with-marker"},
	"elapsed":      {"start-delay"},
	"failed":       {"create", "list", "watch", "delete", "delete-directory", "create-marker", "replace-marker", "delete-with-marker", "read-marker", "create-nodes", "delete-nodes"},
	"done":         {"create-nodes", "delete-nodes"},
	"missing":      {"create-nodes", "delete-nodes"},
	"exists":       {"create-nodes", "delete-nodes"},
	"node-granted": {"acquire-node"},
	"node-refused": {"acquire-node"},
}

// openEffects holds the effects of a script that no event has answered yet, by serial.
type openEffects map[string]Line

// add adds an effect if it is one that an event answers.
func (o openEffects) add(effect Line) {
	for _, of := range answers {
		if serial := effect.Text("serial"); serial != "" && slices.Contains(of, effect.Word) {
			o[serial] = effect
		}
	}
}

// check returns an error if the event answers no open effect, or says more than the effect has
// asked for. The flag unasked marks an event that does so on purpose. A Created with the flag found
// has the children although its effect did not ask for them: the answer was lost, and the bridge
// has found the node.
func (o openEffects) check(event Line) error {
	of, serial := answers[event.Word], event.Text("serial")
	if of == nil || event.Has("unasked") {
		return nil
	}
	effect, ok := o[serial]
	if !ok || !slices.Contains(of, effect.Word) {
		return fmt.Errorf("no open effect of %q has serial %q", of, serial)
	}
	delete(o, serial)
	switch children := event.Text("children") != ""; {
	case event.Word == "created" && children && !effect.Has("list-after") && !effect.Has("beside") && !event.Has("found"):
		return fmt.Errorf("it has children, and the effect was %q", effect)
	case event.Word == "created" && !children && effect.Has("list-after") && event.Text("directory") != "0":
		return fmt.Errorf("it has no children, and the effect was %q", effect)
	case event.Word == "listed" && event.Text("czxids") != "" && !effect.Has("czxids"):
		return fmt.Errorf("it has czxids, and the effect was %q", effect)
	}
	return nil
}

// ShowAnswer returns the line of an effect that answers a request's owner.
func ShowAnswer(f requests.Effect) string {
	switch f.Kind {
	case requests.Refuse, requests.Lose:
		return fmt.Sprintf("%s id=%d reason=%v", strings.ToLower(f.Kind.String()), f.ID, f.Reason)
	case requests.ConfirmRelease:
		return fmt.Sprintf("released id=%d still=%d", f.ID, f.StillHeld)
	case requests.RequestRevoke:
		return fmt.Sprintf("revoke id=%d", f.ID)
	case requests.NotifyContended:
		return fmt.Sprintf("contended id=%d", f.ID)
	}
	return fmt.Sprintf("effect %v", f.Kind)
}
