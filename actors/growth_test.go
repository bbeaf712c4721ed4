package actors_test

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
	zktest.OneRunIn(t, 8)
	const few, times = 300, 8
	dir := t.TempDir()
	binary := filepath.Join(dir, "growth.test")
	command(t, "go", "test", "-c", "-o", binary, "-covermode=atomic", "-coverpkg=./...,../zkbridge,../zkbridge/internal/...,../gen/host", ".")
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
				if n <= 3*times*before[statement] || each <= 20 { // which may be chance
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
	must(t, err)
	code, err := os.ReadFile(filepath.Join("..", file))
	must(t, err)
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
	must(t, err)
	defer f.Close()
	counts := map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if n, err := strconv.Atoi(fields[len(fields)-1]); err == nil {
			counts[fields[0]] += n
		}
	}
	return counts
}

var growthScenarios = map[string]func(v *virtual, n int){
	"new_paths": func(v *virtual, n int) {
		locks := v.locks()
		var fs []*actors.Future[*actors.Grant]
		for i := range n {
			fs = append(fs, locks.Mutex(fmt.Sprint("/m/", i)).Acquire(v.Context()),
				locks.Semaphore(fmt.Sprint("/s/", i), 2).Acquire(v.Context()),
				locks.MultiLock(locks.Mutex(fmt.Sprint("/a/", i)), locks.Mutex(fmt.Sprint("/b/", i))).Acquire(v.Context()))
		}
		for _, f := range fs {
			result(v, f)
		}
	},
	"waiters": func(v *virtual, n int) {
		mu := v.locks().Mutex("/lock")
		holder := lock(v, mu)
		var fs []*actors.Future[*actors.Grant]
		for range n {
			fs = append(fs, mu.Acquire(v.Context()))
		}
		synctest.Wait()
		for _, f := range fs[:n/2] {
			f.Cancel()
		}
		unlock(v, holder)
		for _, f := range fs[n/2:] {
			unlock(v, result(v, f))
		}
	},
	"unanswered": func(v *virtual, n int) { // creates wait in the writer's queue, and their requests end
		locks := v.locks(func(cfg *actors.Config) { cfg.MaxReply = 64 << 20 }) // their nodes are in one list
		mu := locks.Mutex("/lock")
		unlock(v, lock(v, mu))
		v.Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.DelayReply, Delay: time.Second, Times: 3})
		for range n {
			ctx, cancel := context.WithCancel(v.Context())
			f := mu.Acquire(ctx)
			synctest.Wait()
			cancel()
			<-f.Done()
		}
		unlock(v, lock(v, mu))
	},
	"unknown": func(v *virtual, n int) { // answers to creates are lost, in a directory with many names
		locks := v.locks(func(cfg *actors.Config) { cfg.MaxReply = 64 << 20 })
		rw := locks.RWMutex("/lock")
		writer := lock(v, rw.Write())
		read := func() *actors.Future[*actors.Grant] { return rw.Read().Acquire(v.Context()) }
		fs := v.many(n, read)
		for range 5 {
			v.Inject(embedded.Fault{Op: embedded.OpMulti, Action: embedded.DropReply})
			fs = append(fs, v.many(n/5, read)...)
			<-time.After(time.Second)
		}
		unlock(v, writer)
		v.unlockAll(v.results(fs))
	},
	"watches": func(v *virtual, n int) {
		here, there := v.locks(), v.locks()
		var held []*actors.Grant
		var fs []*actors.Future[*actors.Grant]
		for i := range n {
			held = append(held, lock(v, there.Mutex(fmt.Sprint("/w/", i))))
			fs = append(fs, here.Mutex(fmt.Sprint("/w/", i)).Acquire(v.Context()))
		}
		synctest.Wait()
		v.DropConnections()
		<-time.After(time.Second)
		for _, g := range held {
			unlock(v, g)
		}
		for _, f := range fs {
			result(v, f)
		}
	},
	"one_actor": func(v *virtual, n int) { // the open requests of one actor
		config, all := testActors(v.T, 1)
		me := all[0]
		mu := pid(v.testLock, v.locks(config).Mutex("/lock"))
		for i := range n {
			me.send(mu, &messages.Acquire{RequestId: uint64(i) + 1})
		}
		me.granted(1)
		for i := range n - 1 {
			me.send(mu, &messages.Cancel{RequestId: uint64(i) + 2})
			me.refused(uint64(i)+2, messages.Reason_CANCELLED)
		}
	},
	"one_owner": func(v *virtual, n int) { // enters again and again
		mu := v.locks().Mutex("/lock")
		held := v.results(v.many(n, func() *actors.Future[*actors.Grant] { return mu.Acquire(v.Context(), actors.WithOwner("me")) }))
		for _, g := range slices.Backward(held) {
			unlock(v, g)
		}
	},
	"session_lost": func(v *virtual, n int) {
		locks := v.locks()
		var fs []*actors.Future[*actors.Grant]
		for i := range n {
			fs = append(fs, locks.Mutex(fmt.Sprint("/l/", i%7)).Acquire(v.Context()))
		}
		synctest.Wait()
		v.expire(locks)
		for range 7 {
			<-time.After(session)
		}
		for _, f := range fs {
			f.Cancel()
		}
	},
	"readers": func(v *virtual, n int) { // they hold beside each other, before and between the writers of another process
		rw, there := v.locks().RWMutex("/lock"), v.locks()
		read := func() *actors.Future[*actors.Grant] { return rw.Read().Acquire(v.Context()) }
		first := v.results(v.many(n/2, read))
		writer := there.RWMutex("/lock").Write().Acquire(v.Context())
		synctest.Wait()
		second := v.many(n/2, read)
		last := there.RWMutex("/lock").Write().Acquire(v.Context())
		synctest.Wait()
		_, err := there.Inspect(v.Context(), "/lock")
		must(v, err)
		v.unlockAll(first)
		unlock(v, result(v, writer))
		v.unlockAll(v.results(second))
		unlock(v, result(v, last))
	},
	"permits": func(v *virtual, n int) { // many hold and as many wait, of which the last are cancelled first
		s := v.locks().Semaphore("/lock", n/2)
		fs := v.many(n, func() *actors.Future[*actors.Grant] { return s.Acquire(v.Context()) })
		for _, f := range slices.Backward(fs[n*3/4:]) {
			f.Cancel()
		}
		v.unlockAll(v.results(fs[:n/2]))
		v.unlockAll(v.results(fs[n/2 : n*3/4]))
	},
	"contended": func(v *virtual, n int) { // readers of another process come beside a local queue, which waits for writers
		rw, there := v.locks().RWMutex("/lock", longLinger), v.locks().RWMutex("/lock")
		mine := lock(v, rw.Read())
		var held []*actors.Grant
		for range n {
			held = append(held, lock(v, there.Read()))
			synctest.Wait()
		}
		writer := there.Write().Acquire(v.Context())
		v.unlockAll(held)
		unlock(v, mine)
		unlock(v, result(v, writer))
	},
	"deleted": func(v *virtual, n int) { // another client deletes the nodes of many holders, which have no watch yet
		rw := v.locks().RWMutex("/lock")
		held := v.results(v.many(n, func() *actors.Future[*actors.Grant] { return rw.Read().Acquire(v.Context()) }))
		client := v.testLock.Client(v.T)
		for _, node := range v.nodes() {
			must(v, client.Delete(v.path+"/"+node, -1))
		}
		for _, g := range held {
			closes(v, g.Done(), "the grant")
		}
	},
}

// many makes many requests.
func (v *virtual) many(n int, acquire func() *actors.Future[*actors.Grant]) (fs []*actors.Future[*actors.Grant]) {
	for range n {
		fs = append(fs, acquire())
	}
	synctest.Wait()
	return fs
}

func (v *virtual) results(fs []*actors.Future[*actors.Grant]) (all []*actors.Grant) {
	for _, f := range fs {
		all = append(all, result(v, f))
	}
	return all
}

func (v *virtual) unlockAll(all []*actors.Grant) {
	for _, g := range all {
		unlock(v, g)
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
			bubble(t, func(v *virtual) { scenario(v, n) })
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
