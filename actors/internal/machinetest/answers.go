package machinetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/actors/internal/requests"
	"github.com/actorlock/actorlock/actors/queue"
)

// answers holds for each event that is an answer the effects that it may answer.
var answers = map[string][]string{
	"created":      {"create"},
	"listed":       {"list"},
	"watched":      {"watch", "read-marker"},
	"deleted":      {"delete"},
	"transacted":   {"create-marker", "replace-marker", "delete-with-marker"},
	"elapsed":      {"start-delay"},
	"failed":       {"create", "list", "watch", "delete", "create-marker", "replace-marker", "delete-with-marker", "read-marker", "create-nodes", "delete-nodes"},
	"done":         {"create-nodes", "delete-nodes"},
	"missing":      {"create-nodes", "delete-nodes"},
	"exists":       {"create-nodes", "delete-nodes"},
	"node-granted": {"acquire-node"},
	"node-refused": {"acquire-node"},
}

// openRequests holds the effects of a script that are not answered yet, by serial number.
type openRequests map[string]string

// add notes an effect, if one answers it.
func (a openRequests) add(effect string) {
	word, _, _ := strings.Cut(effect, " ")
	for _, of := range answers {
		if serial := argument(effect, "serial"); serial != "" && slices.Contains(of, word) {
			a[serial] = effect
		}
	}
}

// check returns an error if the event answers no open effect, or has more than that asked for. An
// event with the word unasked does so on purpose. A Created with the word found has the children
// though the effect did not ask for them: its answer was lost, and the bridge has found the node.
func (a openRequests) check(event string) error {
	words := strings.Fields(event)
	of, serial := answers[words[0]], argument(event, "serial")
	if of == nil || slices.Contains(words, "unasked") {
		return nil
	}
	effect, ok := a[serial]
	if word, _, _ := strings.Cut(effect, " "); !ok || !slices.Contains(of, word) {
		return fmt.Errorf("serial %q was not asked as one of %q, or is answered", serial, of)
	}
	delete(a, serial)
	lists := strings.Contains(effect, " list-after") || strings.Contains(effect, " beside=") || slices.Contains(words, "found")
	if words[0] == "created" && argument(event, "children") != "" && !lists {
		return fmt.Errorf("children are given to %q", effect)
	}
	if words[0] == "created" && strings.Contains(effect, " list-after") && argument(event, "directory") != "0" && argument(event, "children") == "" {
		return fmt.Errorf("no children are given to %q", effect)
	}
	if words[0] == "listed" && argument(event, "czxids") != "" && !strings.Contains(effect, " czxids") {
		return fmt.Errorf("czxids are given to %q", effect)
	}
	return nil
}

func argument(line, key string) string {
	for _, word := range strings.Fields(line) {
		if v, ok := strings.CutPrefix(word, key+"="); ok {
			return v
		}
	}
	return ""
}

// ShowAnswer shows an effect that answers a request.
func ShowAnswer(kind fmt.Stringer, id requests.ID, why requests.Reason, stillHeld int) string {
	switch kind.String() {
	case "Refuse", "Lose":
		return fmt.Sprintf("%s id=%d reason=%v", strings.ToLower(kind.String()), id, why)
	case "ConfirmRelease":
		return fmt.Sprintf("released id=%d still=%d", id, stillHeld)
	case "NotifyContended":
		return fmt.Sprintf("contended id=%d", id)
	}
	return fmt.Sprintf("effect %v", kind)
}

// Reason returns the reason of a name, or otherwise if the name is empty.
func Reason(t *testing.T, name string, otherwise requests.Reason) requests.Reason {
	if name == "" {
		return otherwise
	}
	for r := requests.Reason(1); r < 100; r++ {
		if r.String() == name {
			return r
		}
	}
	t.Fatalf("unknown reason %q", name)
	return 0
}

// Kind returns the kind of a name, given the names of all kinds, or 0 if the name is empty.
func Kind(t *testing.T, name string, kinds []string) queue.Kind {
	i := slices.Index(kinds, name)
	if i < 0 && name != "" {
		t.Fatalf("unknown kind %q of %q", name, kinds)
	}
	return queue.Kind(max(i, 0))
}
