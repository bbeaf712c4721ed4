package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// hostileShapes are messages that are cheap to send and costly to hold: how many of them a frame has, and
// what the one with a number is.
var hostileShapes = []struct {
	name    string
	count   int
	message func(client, number int) *messages.ClientMessage
}{
	{"empty acquires", 19_900, func(int, int) *messages.ClientMessage {
		return &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{}}}
	}},
	{"refused with a long text", 10_000, func(int, int) *messages.ClientMessage {
		return acquireOf("/"+strings.Repeat("/", 140), 0)
	}},
	{"a lock each", 10_000, func(client, number int) *messages.ClientMessage {
		return acquireOf(fmt.Sprintf("/hostile-%d-%d", client, number%50_000), uint64(number))
	}},
	{"one lock for all", 10_000, func(_, number int) *messages.ClientMessage { return acquireOf("/hostile", uint64(number)) }},
}

func acquireOf(path string, id uint64) *messages.ClientMessage {
	return &messages.ClientMessage{What: &messages.ClientMessage_Acquire{Acquire: &messages.AcquireLock{Path: path, Acquire: &messages.Acquire{RequestId: id}}}}
}

// mostOfHostile is the memory that five clients may have lockd take, by .github/REMOTE.md.
const mostOfHostile = 500 << 20

// Five clients send full frames of such messages, and read nothing. When a stream ends they open another,
// with a lease of its own. lockd takes little memory, below the limits of kubernetes.yaml, and another
// client keeps its lock, and is granted others.
func TestMemoryOfHostileClients(t *testing.T) {
	zktest.OneRunIn(t, 4)
	if zktest.RaceDetector {
		t.Skip("the race detector takes several times the memory")
	}
	manifest, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	soft := regexp.MustCompile(`name: GOMEMLIMIT, value: (\w+)`).FindSubmatch(manifest)
	limit := regexp.MustCompile(`limits: \{memory: (\d+)Gi\}`).FindSubmatch(manifest)
	if soft == nil || limit == nil {
		t.Fatal("kubernetes.yaml has no GOMEMLIMIT, or no limits.memory in Gi")
	}
	t.Setenv("GOMEMLIMIT", string(soft[1]))
	most, _ := strconv.Atoi(string(limit[1]))
	one := rand.N(len(hostileShapes))
	for i, shape := range hostileShapes {
		if zktest.Exhaustive() || i == one {
			t.Run(shape.name, func(t *testing.T) { hostileClients(t, i, most<<30) })
		}
	}
}

func hostileClients(t *testing.T, shape, most int) {
	const clients = 5
	group := memoryGroup(t, most) // removed once lockd has ended
	p := start(t, zktest.Embedded(t), "-insecure")
	if group != "" {
		if err := os.WriteFile(group, []byte(strconv.Itoa(p.cmd.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	honest := p.client(t)
	held := hold(t, honest, "/held")
	var sending sync.WaitGroup
	var streams, frames atomic.Int64
	length := 2 * time.Second
	if zktest.Exhaustive() {
		length *= 3
	}
	end := time.Now().Add(length)
	for client := range clients {
		conn, err := grpc.NewClient(p.addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStaticConnWindowSize(64<<10), grpc.WithStaticStreamWindowSize(64<<10))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		s := hostileShapes[shape]
		var first []*messages.ClientMessage
		for n := range s.count {
			first = append(first, s.message(client, n))
		}
		sending.Go(func() {
			for number := 0; time.Now().Before(end); {
				// A stream that the server has ended blocks: its end is behind answers that nobody reads.
				ctx, cancel := context.WithDeadline(t.Context(), earlier(end, time.Now().Add(700*time.Millisecond)))
				stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/actorlock.LockServer/Connect")
				if err != nil {
					cancel()
					continue
				}
				streams.Add(1)
				err = stream.SendMsg(&messages.ClientFrame{Hello: &messages.Hello{Version: 1, Client: "hostile"}, Renew: &messages.Renew{Number: 1}})
				for next, all := uint64(1), first; err == nil && time.Now().Before(end); next += uint64(s.count) {
					err = stream.SendMsg(&messages.ClientFrame{First: next, Messages: all})
					frames.Add(1)
					for n := range all {
						all[n] = s.message(client, number+n)
					}
					number += s.count
				}
				cancel()
			}
		})
	}
	slowest, locks := time.Duration(0), 0
	for ; time.Now().Before(end); locks++ {
		began := time.Now()
		if err := hold(t, honest, fmt.Sprintf("/honest-%d", locks)).Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(began))
	}
	sending.Wait()
	if err := held.Err(); err != nil {
		t.Errorf("the honest client has lost its lock: %v", err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	peak := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(status)
	if err != nil || peak == nil {
		t.Fatalf("lockd has ended: %v; %s", err, p.log())
	}
	kilobytes, _ := strconv.Atoi(string(peak[1]))
	t.Logf("lockd took %d MB at most (control group: %v); %d streams and %d frames of hostile clients, %d locks of the honest one, the slowest after %v", kilobytes>>10, group != "", streams.Load(), frames.Load(), locks, slowest)
	if kilobytes<<10 > mostOfHostile {
		t.Errorf("lockd took %d MB, more than %d", kilobytes>>10, mostOfHostile>>20)
	}
	if locks == 0 || frames.Load() < clients {
		t.Error("too little happened")
	}
	if log := p.log(); strings.Contains(log, "panic") {
		t.Error(log)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// memoryGroup makes a control group in which the system kills what takes more bytes, and returns the file that takes the
// number of a process. It returns "" where that is not possible: it needs root, and a hierarchy for memory.
func memoryGroup(t *testing.T, bytes int) (processes string) {
	for _, of := range []struct{ root, limit string }{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}} {
		group, err := os.MkdirTemp(of.root, "actorlock-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { os.Remove(group) })
		limit, err := os.OpenFile(filepath.Join(group, of.limit), os.O_WRONLY, 0) // not created: a folder that is no control group lacks it
		if err != nil {
			continue
		}
		_, err = limit.WriteString(strconv.Itoa(bytes))
		limit.Close()
		if err == nil {
			return filepath.Join(group, "cgroup.procs")
		}
	}
	return ""
}
