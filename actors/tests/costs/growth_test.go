package costs

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/embedded"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// growthEnv is how many of each TestGrowthScenarios has.
const growthEnv = "ACTORLOCK_GROWTH"

// The work for each of many things that wait must not depend on how many there are. TestGrowth runs
// the scenarios with few and with many, and counts how often each statement of the library runs: no
// clock is read. Loops in the standard library are not counted, but for the functions that are
// passed to them.
func TestGrowth(t *testing.T) {
	zktest.OneRunIn(t, 40) // half a minute of processor time
	if zktest.RaceDetector {
		t.Skip("the program whose statements it counts has no race detector")
	}
	const few, times = 300, 8
	dir := t.TempDir()
	binary := filepath.Join(dir, "growth.test")
	command(t, "go", "test", "-c", "-o", binary, "-covermode=atomic", "-coverpkg=../../...,../../../zkbridge,../../../zkbridge/internal/...,../../../gen/host", ".")
	for _, name := range growthNames() {
		t.Run(name, func(t *testing.T) {
			count := func(n int) map[string]int {
				profile := filepath.Join(dir, strconv.Itoa(n))
				t.Setenv(growthEnv, strconv.Itoa(n))
				command(t, binary, "-test.run", "^TestGrowthScenarios$/^"+name+"$", "-test.coverprofile", profile)
				return readCounts(t, profile)
			}
			before := count(few)
			grows := func(statement string, n int) bool {
				each := n / (times * few)
				// 20 may be chance, and 64 is from how many groups the writer chooses for each that it sends.
				if n <= 3*times*before[statement] || each <= 70 {
					return false
				}
				return each > 100 || !compares(t, statement) // 100 are eight searches in a sorted list, of twelve comparisons
			}
			after := count(times * few)
			// Some statements run often in one run by chance: the order of goroutines decides how
			// many lists are read and sorted. What grows does so in each run.
			for run := 1; run < 3 && anyOf(after, grows); run++ {
				again := count(times * few)
				maps.DeleteFunc(after, func(statement string, _ int) bool { return !grows(statement, again[statement]) })
			}
			for statement, n := range after {
				if grows(statement, n) {
					t.Errorf("%s runs %d times for %d, and %d times for %d", statement, before[statement], few, n, times*few)
				}
			}
		})
	}
}

// comparing is a line on which a function begins that compares, for a sort or a search.
var comparing = regexp.MustCompile(`(Sort|Search)\w*\(.*func\(|\) compare\(`)

// compares reports whether a block of statements compares for a sort or a search. The block is
// named as in a profile: the path of its package, its file and its lines.
func compares(t *testing.T, block string) bool {
	t.Helper()
	file, at, _ := strings.Cut(strings.TrimPrefix(block, "github.com/actorlock/actorlock/"), ":")
	line, _, _ := strings.Cut(at, ".")
	n, err := strconv.Atoi(line)
	locktest.Must(t, err)
	code, err := os.ReadFile(filepath.Join("..", "..", "..", file))
	locktest.Must(t, err)
	return comparing.MatchString(strings.Split(string(code), "\n")[n-1])
}

func anyOf(counts map[string]int, is func(statement string, n int) bool) bool {
	for statement, n := range counts {
		if is(statement, n) {
			return true
		}
	}
	return false
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

// readCounts returns how often each block of statements has run.
func readCounts(t *testing.T, profile string) map[string]int {
	t.Helper()
	f, err := os.Open(profile)
	locktest.Must(t, err)
	defer f.Close()
	counts := map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if n, err := strconv.Atoi(fields[len(fields)-1]); err == nil {
			counts[fields[0]] += n
		}
	}
	for _, part := range []string{"actors/internal/lock/", "zkbridge/", "zkbridge/internal/writer/"} {
		runs := func(statement string) bool { return strings.Contains(statement, part) && counts[statement] > 0 }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(counts)), runs) {
			t.Fatalf("no statement of %s has run", part)
		}
	}
	return counts
}

var growthScenarios = map[string]func(v *locktest.Virtual, n int){
	"new_paths": func(v *locktest.Virtual, n int) {
		locks := v.Locks()
		var fs []*actors.Future[*actors.Grant]
		for i := range n {
			fs = append(fs, locks.Mutex(fmt.Sprint("/m/", i)).Acquire(v.Context()),
				locks.Semaphore(fmt.Sprint("/s/", i), 2).Acquire(v.Context()),
				locks.MultiLock(locks.Mutex(fmt.Sprint("/a/", i)), locks.Mutex(fmt.Sprint("/b/", i))).Acquire(v.Context()))
		}
		for _, f := range fs {
			locktest.Result(v, f)
		}
	},
	"waiters": func(v *locktest.Virtual, n int) {
		mu := v.Locks().Mutex("/lock")
		holder := locktest.Lock(v, mu)
		var fs []*actors.Future[*actors.Grant]
		for range n {
			fs = append(fs, mu.Acquire(v.Context()))
		}
		synctest.Wait()
		for _, f := range fs[:n/2] {
			f.Cancel()
		}
		locktest.Unlock(v, holder)
		for _, f := range fs[n/2:] {
			locktest.Unlock(v, locktest.Result(v, f))
		}
	},
	"unanswered": func(v *locktest.Virtual, n int) { // creates wait in the writer's queue, and their requests end
		locks := v.Locks(func(cfg *actors.Config) { cfg.MaxReply = 64 << 20 }) // their nodes are in one list
		mu := locks.Mutex("/lock")
		locktest.Unlock(v, locktest.Lock(v, mu))
		v.Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.DelayReply, Delay: time.Second, Times: 3})
		for range n {
			ctx, cancel := context.WithCancel(v.Context())
			f := mu.Acquire(ctx)
			synctest.Wait()
			cancel()
			<-f.Done()
		}
		locktest.Unlock(v, locktest.Lock(v, mu))
	},
	"unknown": func(v *locktest.Virtual, n int) { // answers to creates are lost, in a directory with many names
		locks := v.Locks(func(cfg *actors.Config) { cfg.MaxReply = 64 << 20 })
		rw := locks.RWMutex("/lock")
		writer := locktest.Lock(v, rw.Write())
		read := func() *actors.Future[*actors.Grant] { return rw.Read().Acquire(v.Context()) }
		fs := many(v, n, read)
		for range 5 {
			v.Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.DropReply})
			fs = append(fs, many(v, n/5, read)...)
			<-time.After(time.Second)
		}
		locktest.Unlock(v, writer)
		unlockAll(v, results(v, fs))
	},
	"watches": func(v *locktest.Virtual, n int) {
		here, there := v.Locks(), v.Locks()
		var held []*actors.Grant
		var fs []*actors.Future[*actors.Grant]
		for i := range n {
			held = append(held, locktest.Lock(v, there.Mutex(fmt.Sprint("/w/", i))))
			fs = append(fs, here.Mutex(fmt.Sprint("/w/", i)).Acquire(v.Context()))
		}
		synctest.Wait()
		v.DropConnections()
		<-time.After(time.Second)
		for _, g := range held {
			locktest.Unlock(v, g)
		}
		for _, f := range fs {
			locktest.Result(v, f)
		}
	},
	"one_actor": func(v *locktest.Virtual, n int) { // the open requests of one actor
		config, all := locktest.OwnerActors(v.T, 1)
		me := all[0]
		mu := locktest.PID(v.Fixture, v.Locks(config).Mutex("/lock"))
		for i := range n {
			me.Send(mu, &messages.Acquire{RequestId: uint64(i) + 1})
		}
		me.Granted(1)
		for i := range n - 1 {
			me.Send(mu, &messages.Cancel{RequestId: uint64(i) + 2})
			me.Refused(uint64(i)+2, messages.Reason_CANCELLED)
		}
	},
	"one_owner": func(v *locktest.Virtual, n int) { // enters again and again
		mu := v.Locks().Mutex("/lock")
		held := results(v, many(v, n, func() *actors.Future[*actors.Grant] { return mu.Acquire(v.Context(), actors.WithOwner("me")) }))
		for _, g := range slices.Backward(held) {
			locktest.Unlock(v, g)
		}
	},
	"one_owner_of_several": func(v *locktest.Virtual, n int) { // the same with a multi-lock
		locks := v.Locks()
		m := locks.MultiLock(locks.Mutex("/a"), locks.Mutex("/b"))
		held := results(v, many(v, n, func() *actors.Future[*actors.Grant] { return m.Acquire(v.Context(), actors.WithOwner("me")) }))
		for _, g := range slices.Backward(held) {
			locktest.Unlock(v, g)
		}
	},
	"one_owner_waits": func(v *locktest.Virtual, n int) { // in a local queue, for another process
		mu, there := v.Locks().Mutex("/lock", locktest.LongLinger), v.Locks().Mutex("/lock")
		first := locktest.Lock(v, there)
		fs := many(v, n, func() *actors.Future[*actors.Grant] { return mu.Acquire(v.Context(), actors.WithOwner("me")) })
		locktest.Unlock(v, first)
		for _, g := range slices.Backward(results(v, fs)) {
			locktest.Unlock(v, g)
		}
	},
	"session_lost": func(v *locktest.Virtual, n int) {
		locks := v.Locks()
		var fs []*actors.Future[*actors.Grant]
		for i := range n {
			fs = append(fs, locks.Mutex(fmt.Sprint("/l/", i%7)).Acquire(v.Context()))
		}
		synctest.Wait()
		v.ExpireSession(locks)
		for range 7 {
			<-time.After(locktest.SessionTimeout)
		}
		for _, f := range fs {
			f.Cancel()
		}
	},
	"readers": func(v *locktest.Virtual, n int) { // they hold beside each other, before and between the writers of another process
		rw, there := v.Locks().RWMutex("/lock"), v.Locks()
		read := func() *actors.Future[*actors.Grant] { return rw.Read().Acquire(v.Context()) }
		first := results(v, many(v, n/2, read))
		writer := there.RWMutex("/lock").Write().Acquire(v.Context())
		synctest.Wait()
		second := many(v, n/2, read)
		last := there.RWMutex("/lock").Write().Acquire(v.Context())
		synctest.Wait()
		_, err := there.Inspect(v.Context(), "/lock")
		locktest.Must(v, err)
		unlockAll(v, first)
		locktest.Unlock(v, locktest.Result(v, writer))
		unlockAll(v, results(v, second))
		locktest.Unlock(v, locktest.Result(v, last))
	},
	"permits": func(v *locktest.Virtual, n int) { // many hold and as many wait, of which the last are cancelled first
		s := v.Locks().Semaphore("/lock", n/2)
		fs := many(v, n, func() *actors.Future[*actors.Grant] { return s.Acquire(v.Context()) })
		for _, f := range slices.Backward(fs[n*3/4:]) {
			f.Cancel()
		}
		unlockAll(v, results(v, fs[:n/2]))
		unlockAll(v, results(v, fs[n/2:n*3/4]))
	},
	"contended": func(v *locktest.Virtual, n int) { // readers of another process come beside a local queue, which waits for writers
		rw, there := v.Locks().RWMutex("/lock", locktest.LongLinger), v.Locks().RWMutex("/lock")
		mine := locktest.Lock(v, rw.Read())
		var held []*actors.Grant
		for range n {
			held = append(held, locktest.Lock(v, there.Read()))
			synctest.Wait()
		}
		writer := there.Write().Acquire(v.Context())
		unlockAll(v, held)
		locktest.Unlock(v, mine)
		locktest.Unlock(v, locktest.Result(v, writer))
	},
	"deleted": func(v *locktest.Virtual, n int) { // another client deletes the nodes of many holders, which have no watch yet
		rw := v.Locks().RWMutex("/lock")
		held := results(v, many(v, n, func() *actors.Future[*actors.Grant] { return rw.Read().Acquire(v.Context()) }))
		client := v.Fixture.Client(v.T)
		for _, node := range v.LockNodes() {
			locktest.Must(v, client.Delete(v.LockPath+"/"+node, -1))
		}
		for _, g := range held {
			locktest.Closes(v, g.Done(), "the grant")
		}
	},
}

// many makes many requests.
func many(v *locktest.Virtual, n int, acquire func() *actors.Future[*actors.Grant]) (fs []*actors.Future[*actors.Grant]) {
	for range n {
		fs = append(fs, acquire())
	}
	synctest.Wait()
	return fs
}

func results(v *locktest.Virtual, fs []*actors.Future[*actors.Grant]) (all []*actors.Grant) {
	for _, f := range fs {
		all = append(all, locktest.Result(v, f))
	}
	return all
}

func unlockAll(v *locktest.Virtual, all []*actors.Grant) {
	for _, g := range all {
		locktest.Unlock(v, g)
	}
}

func growthNames() (names []string) {
	for name := range growthScenarios {
		names = append(names, name)
	}
	slices.SortFunc(names, cmp.Compare[string])
	return names
}

// TestGrowthScenarios runs for TestGrowth, in a process of its own.
func TestGrowthScenarios(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv(growthEnv))
	if err != nil {
		t.Skip("it runs for TestGrowth")
	}
	for name, scenario := range growthScenarios {
		t.Run(name, func(t *testing.T) {
			locktest.Bubble(t, func(v *locktest.Virtual) { scenario(v, n) })
		})
	}
}

// BenchmarkGrowth reports the processor time for each of n. It should not grow with n, but for what
// the garbage collector does more often while there is much that lives.
func BenchmarkGrowth(b *testing.B) {
	for _, name := range growthNames() {
		for _, n := range []int{1000, 10_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				var spent time.Duration
				for b.Loop() {
					spent += growthTime(b, name, n) - growthTime(b, name, 1)
				}
				b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*n), "cpu-ns/each")
			})
		}
	}
}

// growthTime returns the processor time of a scenario with n, in a process of its own.
func growthTime(b *testing.B, name string, n int) time.Duration {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestGrowthScenarios$/^"+name+"$", "-test.timeout", "30m")
	cmd.Env = append(os.Environ(), fmt.Sprint(growthEnv, "=", n))
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%s with %d: %v\n%s", name, n, err, out)
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
