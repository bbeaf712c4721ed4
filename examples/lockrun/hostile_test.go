//go:build unix

package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// hostileName has characters that are accepted in a path, and that a terminal obeys or does not
// show; hostileData has more of them.
const (
	hostileName = "a\u202eb\u2028c\u200bd"
	hostileData = hostileName + "\x1b[2Je\u007f\u001f\u009bf\ttab\nline"
)

// No line of lockrun has what a terminal obeys, wherever paths and data of other clients come into
// it. The JSON has the true texts, by escapes of JSON.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		parent := s.Path(t)
		path := parent + "/" + hostileName
		var all []string
		run := func(code int, args ...string) string {
			p := launch(t, "", append(args, "-zk", s.Addr())...)
			if got := p.code(t); got != code {
				t.Errorf("%q: code %d, want %d; %s", args, got, code, &p.stderr)
			}
			text := ""
			for line := range p.lines {
				text += line + "\n"
			}
			all = append(all, text, p.stderr.String())
			return text
		}
		first := holder(t, s, path, "-v", "-data", hostileData)
		second := launch(t, "", append(lockFlags(s, path, "-v"), "true")...)
		zktest.Eventually(t, timeLimit, func() bool { return strings.Contains(second.stderr.String(), "at place 1 of 2") }, "it waits")
		run(0, "who", path)
		run(0, "ls", parent)
		run(exitLost, "verify", "0000000000000000.0000000000000a1f.00000000", path)
		run(exitUsage, "who", path+"/")
		var contenders []struct{ Node, Data string }
		if text := run(0, "who", "-json", path); json.Unmarshal([]byte(text), &contenders) != nil || len(contenders) != 2 ||
			!strings.HasPrefix(contenders[0].Node, path+"/_c_") || contenders[0].Data != hostileData {
			t.Errorf("%s", text)
		}
		var locks []struct{ Path string }
		if text := run(0, "ls", "-json", parent); json.Unmarshal([]byte(text), &locks) != nil || len(locks) != 1 || locks[0].Path != path {
			t.Errorf("%s", text)
		}
		run(exitNotAcquired, "revoke", "-wait", "1ms", path)
		limited := launch(t, "", append(lockFlags(s, path, "-wait", "0"), "true")...)
		limited.code(t)
		run(0, "break", "-yes", "-grace", "0", path)
		first.code(t)
		second.code(t)
		for _, p := range []*lockrunProcess{first, second, limited} {
			p.signal(t, syscall.SIGKILL)
			all = append(all, p.stderr.String())
		}
		for _, text := range all {
			if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%q is not printable in %q", text[i:i+1], text)
			}
		}
		if text := strings.Join(all, ""); strings.Count(text, `/a\u202eb\u2028c\u200bd`) < 8 {
			t.Errorf("the path is not seen everywhere: %s", text)
		}
	})
}
