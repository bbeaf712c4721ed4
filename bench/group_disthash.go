package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/zk"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"github.com/asynkron/protoactor-go/remote"
)

var disthashPeer = peer{
	name: "disthash",
	about: "protoactor's cluster. Its identity lookup is disthash, which has no locks. Its ZooKeeper provider keeps the list of members. " +
		"A partition is a grain. Each member activates the grains that its list of members gives it.",
	server:  "zookeeper",
	version: moduleVersion("github.com/asynkron/protoactor-go"),
	only:    []string{partitionsName},
	join:    joinDisthash,
}

// grainKind is the kind of the grains of partitions.
const grainKind = "partition"

// disthashMember is a member of a cluster of protoactor.
type disthashMember struct {
	groupSpec
	ledger  *termLedger
	cluster *cluster.Cluster
	changed chan cluster.Members // the newest list of members that was not seen yet

	mu     sync.Mutex
	active map[string]bool // grains here, by identity
}

// joinDisthash activates each grain by a request of its identity, as a message to it would. A grain has nothing to ask: it takes
// messages until it is stopped.
func joinDisthash(_ context.Context, s groupSpec, l *termLedger, _ func(error)) (leave func() error, err error) {
	provider, err := zk.New([]string{s.addr}, zk.WithBaseKey(s.path), zk.WithSessionTimeout(s.timeout))
	if err != nil {
		return nil, err
	}
	m := &disthashMember{groupSpec: s, ledger: l, changed: make(chan cluster.Members, 1), active: map[string]bool{}}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	kind := cluster.NewKind(grainKind, actor.PropsFromProducer(func() actor.Actor { return &grain{member: m} }))
	m.cluster = cluster.New(system, cluster.Configure("bench", provider, disthash.New(), remote.Configure("127.0.0.1", 0), cluster.WithKinds(kind)))
	system.EventStream.Subscribe(func(event any) {
		if topology, ok := event.(*cluster.ClusterTopology); ok {
			select {
			case <-m.changed:
			default:
			}
			m.changed <- topology.Members
		}
	})
	go m.activate()
	m.cluster.StartMember() // panics if it cannot
	return func() error {
		m.cluster.Shutdown(true)
		return nil
	}, nil
}

// activate activates the grains that belong to this member: whenever the list of members changes, and again those that failed.
func (m *disthashMember) activate() {
	hash, again := cluster.NewRendezvous(), time.Tick(100*time.Millisecond)
	for {
		select {
		case members := <-m.changed:
			hash.UpdateMembers(members)
		case <-again:
		}
		for n := range m.count {
			identity := fmt.Sprintf("%05d", n)
			here := hash.GetByClusterIdentity(cluster.NewClusterIdentity(identity, grainKind)) == m.cluster.ActorSystem.Address()
			if here && !m.isActive(identity) {
				m.cluster.Get(identity, grainKind)
			}
		}
	}
}

func (m *disthashMember) isActive(identity string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.active[identity]
}

func (m *disthashMember) setActive(identity string, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.active[identity] = is
}

// grain is the actor of a partition.
type grain struct {
	member *disthashMember
	held   *heldTerm
}

func (g *grain) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		identity, partition := cluster.GetClusterIdentity(ctx).Identity, 0
		if _, err := fmt.Sscanf(identity, "%d", &partition); err == nil {
			g.member.setActive(identity, true)
			g.held = g.member.ledger.begin(partition, func() error { return nil })
		}
	case *actor.Stopping:
		if g.held != nil {
			g.held.end()
			g.member.setActive(cluster.GetClusterIdentity(ctx).Identity, false)
		}
	}
}
