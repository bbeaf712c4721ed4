//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/actors/remote"
	"github.com/actorlock/actorlock/zkbridge/zktest"
)

// fleet are the clients of a drill. Two of them want each lock, hold it for about a second, and
// release it earlier if they are asked to.
type fleet struct {
	began   time.Time
	ctx     context.Context
	leave   context.CancelFunc
	members sync.WaitGroup
	holdOn  atomic.Bool // until they lose what they hold: those of a tenth of the locks

	mu     sync.Mutex
	locks  map[string]*drilledLock
	grants map[string]string // token and path -> identity
	counts map[string]int    // identity -> grants
	losses []loss
	wrong  []string
	lines  map[string]*logLine // of the clients' logs
}

// drilledLock is what the drill knows of a lock.
type drilledLock struct {
	last   actors.Token
	holder *actors.Grant // nil if its client has begun to release it
	name   string        // of the client
}

// loss is a grant that a client lost.
type loss struct {
	at     time.Duration // since the drill began
	client string
	err    error
}

// logLine counts the lines of one message.
type logLine struct {
	count       int
	first, last time.Duration
}

func newFleet() *fleet {
	ctx, leave := context.WithCancel(context.Background())
	return &fleet{began: time.Now(), ctx: ctx, leave: leave, locks: map[string]*drilledLock{}, grants: map[string]string{}, counts: map[string]int{}, lines: map[string]*logLine{}}
}

// dismiss has the clients release and close, and blocks until they have.
func (f *fleet) dismiss() {
	f.leave()
	f.members.Wait()
}

func (f *fleet) now() time.Duration { return time.Since(f.began).Round(100 * time.Millisecond) }

// Enabled implements slog.Handler.
func (f *fleet) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (f *fleet) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "state" {
			text += " " + a.Value.String()
		}
		return true
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lines[text] == nil {
		f.lines[text] = &logLine{first: f.now()}
	}
	f.lines[text].count++
	f.lines[text].last = f.now()
	return nil
}

// WithAttrs implements slog.Handler.
func (f *fleet) WithAttrs([]slog.Attr) slog.Handler { return f }

// WithGroup implements slog.Handler.
func (f *fleet) WithGroup(string) slog.Handler { return f }

// as returns the configuration of a client whose certificate has its identity as a URI.
func (f *fleet) as(a *zktest.Authority, identity string) remote.DialConfig {
	id, err := url.Parse(identity)
	cert := a.IssueChanged("client", func(c *x509.Certificate) { c.DNSNames, c.URIs = nil, []*url.URL{id} })
	if err != nil {
		panic(err)
	}
	return remote.DialConfig{Config: actors.Config{Logger: slog.New(f), TLS: &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{cert}}}}
}

// join has clients connect, and acquire locks below path from then on.
func (f *fleet) join(t *testing.T, a *zktest.Authority, servers, group, path string, clients int) {
	t.Helper()
	var connecting sync.WaitGroup
	for i := range clients {
		name := fmt.Sprintf("spiffe://drill/%s/%d", group, i)
		config, key := f.as(a, name), fmt.Sprintf("%s/%s-%d", path, group, i/2)
		connecting.Go(func() {
			ctx, cancel := context.WithTimeout(f.ctx, timeLimit)
			defer cancel()
			locks, err := remote.Dial(ctx, servers, config)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			f.members.Go(func() {
				defer locks.Close()
				f.use(locks, name, key)
			})
		})
	}
	connecting.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// use acquires and releases a lock until the drill ends.
func (f *fleet) use(locks *actors.Locks, name, path string) {
	mu := locks.Mutex(path)
	for f.ctx.Err() == nil {
		grant, err := mu.Lock(f.ctx)
		if err != nil {
			if f.ctx.Err() == nil {
				f.fault("%s is refused %s: %v", name, path, err)
				time.Sleep(time.Second) // so that the list does not grow with each attempt
			}
			continue
		}
		f.granted(name, grant)
		hold := time.After(500*time.Millisecond + rand.N(time.Second))
		if f.holdOn.Load() && strings.HasSuffix(path, "0") {
			hold = nil
		}
		select {
		case <-hold:
		case <-grant.Revoked():
		case <-grant.Done():
		case <-f.ctx.Done():
		}
		f.lettingGo(grant)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(f.ctx), timeLimit)
		err = grant.Unlock(ctx)
		cancel()
		if err != nil {
			f.mu.Lock()
			f.losses = append(f.losses, loss{f.now(), name, err})
			f.mu.Unlock()
		}
	}
}

func (f *fleet) fault(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong = append(f.wrong, fmt.Sprintf("%v: ", f.now())+fmt.Sprintf(format, args...))
}

// granted checks that nobody else holds, and that tokens grow.
func (f *fleet) granted(name string, grant *actors.Grant) {
	path := grant.Path()
	f.mu.Lock()
	l := f.locks[path]
	if l == nil {
		l = &drilledLock{}
		f.locks[path] = l
	}
	former, formerName, last := l.holder, l.name, l.last
	l.holder, l.name, l.last = grant, name, grant.Token()
	f.counts[name]++
	f.grants[grant.Token().String()+" "+path] = name
	f.mu.Unlock()
	if former != nil && former.Err() == nil && grant.Err() == nil {
		f.fault("%s and %s hold %s at one time", formerName, name, path)
	}
	if last.Compare(grant.Token()) >= 0 {
		f.fault("the token %v of %s for %s is not greater than %v", grant.Token(), name, path, last)
	}
}

func (f *fleet) lettingGo(grant *actors.Grant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := f.locks[grant.Path()]; l.holder == grant {
		l.holder = nil
	}
}

// takeLosses returns the losses since its last call.
func (f *fleet) takeLosses() (all []loss) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all, f.losses = f.losses, nil
	return all
}

// awaitGrants blocks until each client has got a grant after this call, and returns how long the last
// one has waited.
func (f *fleet) awaitGrants(t *testing.T) time.Duration {
	t.Helper()
	began, before := time.Now(), f.grantsOf()
	zktest.Eventually(t, timeLimit, func() bool {
		now := f.grantsOf()
		for name, n := range before {
			if now[name] <= n {
				return false
			}
		}
		return true
	}, "each client holds its lock again")
	return time.Since(began).Round(100 * time.Millisecond)
}

func (f *fleet) grantsOf() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]int{}
	for name, n := range f.counts {
		all[name] = n
	}
	return all
}

// describe returns how many losses there were, when, and why.
func describe(losses []loss) string {
	if len(losses) == 0 {
		return "no grant is lost"
	}
	why := map[string]int{}
	for _, l := range losses {
		reason, _, _ := strings.Cut(l.err.Error(), ":")
		why[reason]++
	}
	return fmt.Sprintf("%d grants are lost, from %v to %v: %v", len(losses), losses[0].at, losses[len(losses)-1].at, why)
}

// checkLosses checks that grants were lost with their sessions, not before a time, and by the clients of a
// group only.
func (f *fleet) checkLosses(losses []loss, from time.Duration, group string) {
	for _, l := range losses {
		if !errors.Is(l.err, actors.ErrSessionLost) || l.at < from || !strings.HasPrefix(l.client, "spiffe://drill/"+group+"/") {
			f.fault("%s lost its lock at %v, against REMOTE.md: %v", l.client, l.at, l.err)
		}
	}
}

// summary returns the lines of the clients' logs by the time of the first of each.
func (f *fleet) summary() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var texts []string
	for text := range f.lines {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int { return int(f.lines[a].first - f.lines[b].first) })
	for _, text := range texts {
		l := f.lines[text]
		all = append(all, fmt.Sprintf("%5d, %v to %v: %s", l.count, l.first, l.last, text))
	}
	return all
}
