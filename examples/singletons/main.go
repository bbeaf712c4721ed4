// Command singletons has one actor per key in a fleet: two members share the accounts of a shop,
// each account has its actor in one of them, and when one member ends, the other takes its accounts
// over.
//
//	go run ./examples/singletons [-zk SERVERS] [-keys N]
//
// Without -zk it starts the embedded server. It prints what an account costs in time and memory:
// try -keys 10000.
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/actorlock/actorlock/actors"
	"github.com/actorlock/actorlock/zkbridge/embedded"
)

func main() {
	servers := flag.String("zk", "", "the ZooKeeper `servers`, as in zk1:2181,zk2:2181 (default: an embedded one)")
	keys := flag.Int("keys", 6, "how `many` accounts there are")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *servers, *keys, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "singletons:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, servers string, keys int, out io.Writer) error {
	if keys < 1 {
		return fmt.Errorf("-keys %d: it must be at least 1", keys)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute) // a second is enough for a few keys
	defer cancel()
	if servers == "" {
		server, err := embedded.Start(embedded.ServerConfig{})
		if err != nil {
			return err
		}
		defer server.Close()
		servers = server.Addr()
	}
	// The accounts' names may be any text. In a fleet the members would be processes.
	dir, shop := "/singletons/"+rand.Text()[:8], newShop(keys)
	var members []*member
	for _, name := range []string{"ann", "bob"} {
		m, err := join(ctx, servers, name, shop)
		if err != nil {
			return err
		}
		defer m.end()
		members = append(members, m)
	}

	before, began := heap(), time.Now()
	for i := range keys { // the member that asks first for an account has its actor
		members[i%2].offer(dir, account(i))
	}
	if err := shop.await(ctx, func() bool { return len(shop.at) == keys }); err != nil {
		return err
	}
	fmt.Fprintf(out, "each of %d accounts has its actor after %v: ann %d, bob %d\n", keys, time.Since(began).Round(time.Millisecond),
		shop.has("ann"), shop.has("bob"))
	for i := range keys { // the other one waits
		members[1-i%2].offer(dir, account(i))
	}

	began = time.Now()
	if err := members[0].leave(ctx); err != nil {
		return err
	}
	if err := shop.await(ctx, func() bool { return shop.members["bob"] == keys }); err != nil {
		return err
	}
	fmt.Fprintf(out, "ann has left, and bob has all %d after %v\n", keys, time.Since(began).Round(time.Millisecond))
	fmt.Fprintf(out, "an account takes %.0f KB of his memory\n", (heap()-before)/float64(keys)/1024)
	if err := shop.failed(); err != nil {
		return err
	}
	fmt.Fprintln(out, "no account had two actors at one time, and each new actor's token was greater")
	return nil
}

func account(i int) string { return fmt.Sprintf("shop 1/account %d", i) }

// member is a member of the fleet.
type member struct {
	name   string
	shop   *shop
	system *actor.ActorSystem
	locks  *actors.Locks
	offers []*actor.PID
}

func join(ctx context.Context, servers, name string, shop *shop) (*member, error) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	locks, err := actors.Connect(ctx, servers, actors.Config{System: system})
	if err != nil {
		system.Shutdown()
		return nil, err
	}
	return &member{name: name, shop: shop, system: system, locks: locks}, nil
}

// offer has the member take part in the election of the account's actor.
func (m *member) offer(dir, key string) {
	props := m.locks.Election(actors.PathOf(dir, key), actors.AsID(m.name)).Singleton(func(term *actors.SingletonTerm) *actor.Props {
		return actor.PropsFromProducer(func() actor.Actor { return &keeper{m, key, term} })
	})
	m.offers = append(m.offers, m.system.Root.Spawn(props))
}

// leave stops the actors of the accounts, and then resigns. A member that is killed has its
// accounts until its session ends, and one that is cut off may have an actor a little longer: the
// shop tells it by the token.
func (m *member) leave(ctx context.Context) error {
	for _, pid := range m.offers {
		m.system.Root.Stop(pid)
	}
	if err := m.shop.await(ctx, func() bool { return m.shop.members[m.name] == 0 }); err != nil {
		return err
	}
	return m.locks.Close()
}

func (m *member) end() {
	m.locks.Close()
	m.system.Shutdown()
}

// keeper is the one actor of an account.
type keeper struct {
	member *member
	key    string
	term   *actors.SingletonTerm
}

// Receive implements actor.Actor.
func (k *keeper) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		k.member.shop.open(k.key, k.member.name, k.term.Token())
	case *actor.Stopped:
		k.member.shop.close(k.key, k.member.name)
	}
}

// heap returns the bytes of the live objects.
func heap() float64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
