package embedded_test

import (
	_ "embed"
	"regexp"
	"strings"
	"testing"

	"github.com/actorlock/actorlock/zkbridge/zktest"
	"github.com/actorlock/actorlock/zkbridge/zktest/interop"
)

//go:embed testdata/shell.txt
var transcript string // what is printed, then what goes to the error stream, then the events

// changing is what differs from run to run in what the shell prints.
var changing = regexp.MustCompile(`0x[0-9a-f]+|time = .*`)

// eventZxid is what the shell of ZooKeeper 3.9 prints behind an event. The event that the client
// itself makes has no zxid.
var eventZxid = regexp.MustCompile(`( zxid: [1-9]\d*|(WatchRemoved path:\S+) zxid: -1)\n`)

// Commands of zkCli.sh print the same on both servers.
func TestShell(t *testing.T) {
	t.Parallel()
	zktest.Each(t, func(t *testing.T, s *zktest.Server) {
		path := s.Path(t)
		script := strings.Split(strings.ReplaceAll(strings.TrimSpace(`
create /p hello
get -s /p
create -s -e /p/n- x
create -c /p/container
create -t 100000 /p/ttl x
create /p hello
ls -R /p
stat -w /p
set /p world
set -v 7 /p world
addauth digest u:p
create /p/secret s auth::cdrwa
getAcl -s /p/secret
setAcl /p/secret world:anyone:cdrwa
getEphemerals /p
getAllChildrenNumber /p
whoami
addWatch -m PERSISTENT /p
set /p again
removewatches /p
ls -w /p
create /p/last
sync /p
delete /p/none
delete /p
deleteall /p
get /p
ls /zookeeper
`), "/p", path), "\n")
		_, out, _ := strings.Cut(interop.Shell(t, s.Addr(), script...), "JLine support is disabled\n")
		out = changing.ReplaceAllString(strings.ReplaceAll(out, path, "/p"), "?")
		var got, events []string
		for line := range strings.Lines(out) {
			switch event, ok := strings.CutPrefix(line, "WatchedEvent "); {
			case ok && !strings.Contains(event, "type:None"):
				events = append(events, eventZxid.ReplaceAllString(event, "$2\n")) // another thread prints them, at any time
			case !ok && line != "\n" && line != "WATCHER::\n":
				got = append(got, line)
			}
		}
		if got := strings.Join(append(got, events...), ""); got != transcript {
			t.Errorf("got\n%s\nwant\n%s", got, transcript)
		}
	})
}
