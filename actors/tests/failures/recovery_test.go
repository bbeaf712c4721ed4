package failures

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/internal/locktest"
	"github.com/actorlock/actorlock/messages"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

var measureRecovery = flag.Bool("recovery", false, "measure how long a process is without its locks after an outage of a real ZooKeeper, for some minutes")

// TestRecoveryTimes is a measurement. It prints how long after the end of an outage a process holds
// a lock that it held before, and a lock that it has waited for. The server is killed and starts
// again, or the process is cut off.
func TestRecoveryTimes(t *testing.T) {
	if !*measureRecovery {
		t.Skip("a measurement, for the flag -recovery")
	}
	var mu sync.Mutex
	var table []string
	report := func(kind string, away time.Duration, o *measuredOutage) {
		row := o.measure(kind, away)
		mu.Lock()
		defer mu.Unlock()
		table = append(table, row)
		t.Log(row)
	}
	const settled = 20 * time.Second // right after its handshake a session survives longer outages
	lengths := []time.Duration{1, 2, 5, 11, 20, 40, 60}
	sessions := []time.Duration{4 * time.Second, 10 * time.Second, 20 * time.Second}
	for _, away := range lengths {
		away *= time.Second
		s := zktest.Own(t, zktest.TickTime(time.Second))
		var all []*measuredOutage
		for _, timeout := range sessions {
			all = append(all, newOutage(t, s, s.Addr(), timeout))
		}
		<-time.After(settled)
		s.Stop(t)
		<-time.After(away)
		serves := make(chan time.Time, 1)
		go func() {
			for !isServing(s.Addr()) {
				<-time.After(10 * time.Millisecond)
			}
			serves <- time.Now()
		}()
		var wg sync.WaitGroup
		wg.Go(func() { s.Start(t) }) // which returns later than the server begins to serve
		ended := <-serves
		for _, o := range all {
			o.ended = ended
			wg.Go(func() { report("restart", away, o) })
		}
		wg.Wait()
		for _, o := range all {
			o.close()
		}
		s.Stop(t)
	}
	s := zktest.Own(t, zktest.TickTime(time.Second))
	var wg sync.WaitGroup
	for _, away := range lengths {
		for _, timeout := range sessions {
			away := away * time.Second
			proxy := zktest.Proxy(t, s.Addr())
			o := newOutage(t, s, proxy.Addr(), timeout)
			defer o.close()
			wg.Go(func() {
				<-time.After(settled)
				proxy.BlackHole(true)
				<-time.After(away)
				proxy.BlackHole(false)
				o.ended = time.Now()
				report("partition", away, o)
			})
		}
	}
	wg.Wait()
	slices.Sort(table)
	fmt.Println(strings.Join(table, "\n"))
}

// isServing reports whether the server answers soon that it serves. A starting server may accept a
// connection and never answer.
func isServing(addr string) bool {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(100 * time.Millisecond))
	conn.Write([]byte("srvr"))
	answer, _ := io.ReadAll(conn)
	return strings.Contains(string(answer), "Mode: ")
}

// measuredOutage is an outage of a process that holds a lock and waits for another.
type measuredOutage struct {
	t          *testing.T
	timeout    time.Duration
	ended      time.Time
	cut, other *actors.Locks
	held       *actors.Grant
	again      chan time.Time // receives the time at which the lost lock is held again
	wanted     *actors.Future[*actors.Grant]
	elsewhere  *actors.Grant // of the wanted lock, by the other process
}

func newOutage(t *testing.T, s *zktest.Server, addr string, timeout time.Duration) *measuredOutage {
	o := &measuredOutage{t: t, timeout: timeout, again: make(chan time.Time, 1)}
	configure := func(cfg *actors.Config) { cfg.SessionTimeout = timeout }
	o.cut, o.other = locktest.Connect(t, addr, configure), locktest.Connect(t, s.Addr(), configure)
	path := s.Path(t)
	held, wanted := o.cut.Mutex(path+"-held"), path+"-wanted"
	o.held, o.elsewhere = locktest.Lock(t, held), locktest.Lock(t, o.other.Mutex(wanted))
	o.wanted = o.cut.Mutex(wanted).Acquire(context.Background())
	zktest.Eventually(t, zktest.TimeLimit, func() bool { return len(s.Nodes(t, wanted)) == 2 }, "the process waits")
	go func() {
		<-o.held.Done()
		if _, err := held.Lock(context.Background()); err == nil {
			o.again <- time.Now()
		}
	}()
	return o
}

// measure waits until both locks are held.
func (o *measuredOutage) measure(kind string, away time.Duration) string {
	o.elsewhere.Release()
	_, err := o.wanted.Wait(context.Background())
	got := time.Since(o.ended)
	how := "kept"
	if o.held.Err() == nil {
		zktest.Eventually(o.t, zktest.TimeLimit, func() bool { return o.cut.Session().State == messages.SessionState_CONNECTED }, "the process is connected")
	} else {
		how = fmt.Sprintf("%4.1f", (<-o.again).Sub(o.ended).Seconds())
	}
	return fmt.Sprintf("%-9s away %4.1f s, session of %2.0f s: held before %s, waited for %4.1f (%v)",
		kind, away.Seconds(), o.timeout.Seconds(), how, got.Seconds(), err)
}

func (o *measuredOutage) close() {
	o.cut.Close()
	o.other.Close()
}

// TestRecovery checks in virtual time what TestRecoveryTimes measures. A process that has lost its
// session holds its locks again as soon as it is connected and the margin has passed since the
// loss, however long the server keeps the session. Another process that waits for the lock holds no
// earlier than the margin after the loss.
func TestRecovery(t *testing.T) {
	t.Parallel()
	for name, outage := range map[string]func(v *locktest.Virtual, n *locktest.Network) (end func()){
		"restart": func(v *locktest.Virtual, _ *locktest.Network) func() {
			v.Halt()
			return v.Restart
		},
		"cut off": func(_ *locktest.Virtual, n *locktest.Network) func() {
			n.Disconnect()
			return func() { n.Refuse(false) }
		},
	} {
		for _, away := range []time.Duration{1, 2, 5, 11, 20, 40, 60} {
			for _, timeout := range []time.Duration{4, 10, 20} {
				t.Run(fmt.Sprintf("%s, away %d s, session of %d s", name, away, timeout), func(t *testing.T) {
					locktest.Bubble(t, func(v *locktest.Virtual) { recovery(v, away*time.Second, timeout*time.Second, outage) })
				})
			}
		}
	}
}

func recovery(v *locktest.Virtual, away, timeout time.Duration, outage func(*locktest.Virtual, *locktest.Network) func()) {
	margin, slack := timeout/5, 2*time.Second+min(timeout/5, 4*time.Second) // slack is for the pause before the attempt that connects
	p := v.Process(func(cfg *actors.Config) { cfg.SessionTimeout = timeout })
	held := p.Locks.Mutex(v.LockPath)
	others := v.Locks(func(cfg *actors.Config) { cfg.SessionTimeout = timeout })
	const wanted = "/lock-wanted"
	g, elsewhere := locktest.Lock(v, held), locktest.Lock(v, others.Mutex(wanted))
	waiting := p.Locks.Mutex(wanted).Acquire(context.Background())
	<-time.After(2 * timeout)
	next := others.Mutex(v.LockPath).Acquire(context.Background())
	<-time.After(time.Second)
	end := outage(v, p.Network)
	lost, granted := closedAt(g.Done()), closedAt(next.Done())
	<-time.After(away)
	end()
	back := time.Now()
	<-time.After(slack)
	if !locktest.IsClosed(g.Done()) {
		if away > timeout-margin {
			v.Errorf("the session is not lost after %v", away)
		}
		locktest.Unlock(v, g)
		locktest.Unlock(v, locktest.Result(v, next))
		elsewhere.Release()
		locktest.Unlock(v, locktest.Result(v, waiting))
		return
	}
	again := held.Acquire(context.Background())
	elsewhere.Release()
	lostAt := <-lost
	<-time.After(max(time.Until(lostAt.Add(margin)), time.Until(back)) + slack)
	first, err := next.Result()
	if err != nil {
		v.Fatalf("%v after the outage, %v after the loss, the next contender waits: %v", time.Since(back), time.Since(lostAt), v.LockNodes())
	}
	if after := (<-granted).Sub(lostAt); after < margin {
		v.Errorf("the next contender holds %v after the loss, the margin is %v", after, margin)
	}
	locktest.Unlock(v, first)
	<-time.After(time.Millisecond)
	for what, f := range map[string]*actors.Future[*actors.Grant]{"held before": again, "waited for": waiting} {
		if !locktest.IsClosed(f.Done()) {
			v.Fatalf("%v after the outage, and %v after the loss, the lock that the process has %s is not held: %v",
				time.Since(back), time.Since(lostAt), what, v.LockNodes())
		}
		locktest.Unlock(v, locktest.Result(v, f))
	}
}

// closedAt sends the time at which done is closed.
func closedAt(done <-chan struct{}) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		<-done
		at <- time.Now()
	}()
	return at
}
