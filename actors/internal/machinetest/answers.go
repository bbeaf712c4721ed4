package machinetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/actorlock/actorlock/actors/internal/requests"
)

// answers says which effects an answer may be to.
var answers = map[string][]string{
	"created":    {"create"},
	"listed":     {"list"},
	"watched":    {"watch", "look"},
	"deleted":    {"delete"},
	"transacted": {"mark", "remark", "clear"},
	"elapsed":    {"delay"},
	"failed":     {"create", "list", "watch", "mark", "remark", "clear", "look", "take", "prove", "leave", "delete"},
	"done":       {"take", "prove", "leave"},
	"missing":    {"take", "prove", "leave"},
	"exists":     {"take", "prove", "leave"},
	"borrowed":   {"borrow"},
	"refused":    {"borrow"},
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

// check returns an error if the event is an answer to nothing that was asked, or tells what
// was not asked for. An event with the word unasked is one on purpose. One with the word found
// tells what is in the directory though that was not asked for: it is about a create whose
// answer was lost, and whose node was searched for.
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
	looks := strings.Contains(effect, " look") || strings.Contains(effect, " beside=") || slices.Contains(words, "found")
	if words[0] == "created" && argument(event, "children") != "" && !looks {
		return fmt.Errorf("children are given to %q", effect)
	}
	if words[0] == "created" && strings.Contains(effect, " look") && argument(event, "directory") != "0" && argument(event, "children") == "" {
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
		return fmt.Sprintf("%s id=%d why=%d", strings.ToLower(kind.String()), id, why)
	case "ConfirmRelease":
		return fmt.Sprintf("released id=%d still=%d", id, stillHeld)
	case "NotifyContended":
		return fmt.Sprintf("contended id=%d", id)
	}
	return fmt.Sprintf("effect %v", kind)
}
