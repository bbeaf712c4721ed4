package main

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// joinEtcd is what a program writes by hand on etcd's concurrency: a session for the process, a key that says that it is a member,
// and an election for each partition. The first two members of a partition's placement campaign. A leader that is not the first
// one resigns when the first one waits. A member watches all keys of the group. A leader asks whether its session is done.
var joinEtcd joinGroup = func(ctx context.Context, s groupSpec, l *termLedger, _ func(error)) (leave func() error, err error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.addr}, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	if _, err := client.Status(ctx, s.addr); err != nil {
		client.Close()
		return nil, err
	}
	leaving, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		for more := true; more; {
			m := &etcdMember{groupSpec: s, client: client, ledger: l, leaving: leaving}
			var err error
			if more, err = m.serve(); err != nil {
				time.Sleep(100 * time.Millisecond) // the server cannot be reached
			}
		}
	}()
	return func() error {
		close(leaving)
		<-left
		return client.Close()
	}, nil
}

// etcdMember is a member of a group for the time of a session.
type etcdMember struct {
	groupSpec
	client  *clientv3.Client
	session *concurrency.Session
	ledger  *termLedger
	leaving chan struct{}

	members   map[int]bool
	waits     []map[string]int // by partition: the keys of campaigns and leaders, and their members
	placed    placement
	campaigns map[int]*etcdCampaign
	events    chan etcdEvent
}

// etcdCampaign is a campaign for a partition, and the term that follows.
type etcdCampaign struct {
	stop  context.CancelFunc
	leads bool
}

// etcdEvent is the news of a campaign: the member leads the partition, or its campaign is over.
type etcdEvent struct {
	partition int
	over      bool
}

// serve is a member until the session is done, or it is to leave. more is whether it shall be a member again.
func (m *etcdMember) serve() (more bool, err error) {
	if m.session, err = concurrency.NewSession(m.client, concurrency.WithTTL(int(m.timeout.Seconds()))); err != nil {
		return !m.isLeaving(), err
	}
	defer m.session.Close()
	ctx, cancel := context.WithCancel(m.session.Ctx())
	defer cancel()
	news, err := m.enter(ctx)
	if err != nil {
		return !m.isLeaving(), err
	}
	defer m.stopAll()
	m.settleAll(ctx)
	for {
		select {
		case n, ok := <-news:
			if !ok || n.Err() != nil {
				return true, errors.Join(n.Err(), errors.New("the watch is over"))
			}
			m.learn(ctx, n.Events)
		case e := <-m.events:
			m.note(ctx, e)
		case <-m.session.Done():
			return true, nil
		case <-m.leaving:
			_, err := m.client.Delete(ctx, m.memberKey())
			return false, err
		}
	}
}

func (m *etcdMember) isLeaving() bool {
	select {
	case <-m.leaving:
		return true
	default:
		return false
	}
}

func (m *etcdMember) memberKey() string { return path.Join(m.path, "members", strconv.Itoa(m.number)) }

// enter writes the key of the member, and reads the group. It returns the changes since.
func (m *etcdMember) enter(ctx context.Context) (clientv3.WatchChan, error) {
	if _, err := m.client.Put(ctx, m.memberKey(), "", clientv3.WithLease(m.session.Lease())); err != nil {
		return nil, err
	}
	state, err := m.client.Get(ctx, m.path+"/", clientv3.WithPrefix())
	if err != nil {
		return nil, err
	}
	m.members, m.waits, m.campaigns = map[int]bool{}, make([]map[string]int, m.count), map[int]*etcdCampaign{}
	for n := range m.waits {
		m.waits[n] = map[string]int{}
	}
	m.events = make(chan etcdEvent, 2*m.count) // a campaign has two
	for _, kv := range state.Kvs {
		m.apply(kv, true)
	}
	return m.client.Watch(ctx, m.path+"/", clientv3.WithPrefix(), clientv3.WithRev(state.Header.Revision+1)), nil
}

// apply notes that a key has come, with a value, or gone. It returns the partition, or -1 for a member.
func (m *etcdMember) apply(kv *mvccpb.KeyValue, is bool) (partition int) {
	key := string(kv.Key)
	words := strings.Split(strings.TrimPrefix(key, m.path+"/"), "/")
	number, _ := strconv.Atoi(words[1])
	switch {
	case words[0] == "partitions" && is:
		m.waits[number][key], _ = strconv.Atoi(string(kv.Value))
	case words[0] == "partitions":
		delete(m.waits[number], key)
	case is:
		m.members[number] = true
		return -1
	default:
		delete(m.members, number)
		return -1
	}
	return number
}

// hasWaiting reports whether the member campaigns for the partition, or leads it.
func (m *etcdMember) hasWaiting(n, member int) bool {
	for _, who := range m.waits[n] {
		if who == member {
			return true
		}
	}
	return false
}

func (m *etcdMember) learn(ctx context.Context, events []*clientv3.Event) {
	changed := map[int]bool{}
	for _, e := range events {
		changed[m.apply(e.Kv, e.Type == clientv3.EventTypePut)] = true
	}
	if changed[-1] {
		m.settleAll(ctx)
		return
	}
	for n := range changed {
		m.settle(ctx, n)
	}
}

func (m *etcdMember) note(ctx context.Context, e etcdEvent) {
	if e.over {
		delete(m.campaigns, e.partition)
	} else {
		m.campaigns[e.partition].leads = true
	}
	m.settle(ctx, e.partition)
}

func (m *etcdMember) settleAll(ctx context.Context) {
	m.placed = place(slices.Sorted(maps.Keys(m.members)), m.count)
	for n := range m.count {
		m.settle(ctx, n)
	}
}

// settle begins a campaign for the partition, or ends it, as the placement says.
func (m *etcdMember) settle(ctx context.Context, n int) {
	first, second := m.placed.first[n], m.placed.second[n]
	wanted := first == m.number || second == m.number
	c := m.campaigns[n]
	switch {
	case c == nil && wanted:
		campaigning, stop := context.WithCancel(ctx)
		m.campaigns[n] = &etcdCampaign{stop: stop}
		go m.campaign(campaigning, n)
	case c == nil:
	case c.leads && first != m.number && m.hasWaiting(n, first), !c.leads && !wanted:
		c.stop()
	}
}

// campaign waits for the partition, and leads it until ctx ends, as it does when the session is done.
func (m *etcdMember) campaign(ctx context.Context, n int) {
	defer func() { m.events <- etcdEvent{n, true} }()
	election := concurrency.NewElection(m.session, path.Join(m.path, "partitions", strconv.Itoa(n)))
	if election.Campaign(ctx, strconv.Itoa(m.number)) != nil {
		return // ctx has ended, and the key is gone, or the server cannot be reached
	}
	held := m.ledger.begin(n, func() error {
		select {
		case <-m.session.Done():
			return errors.New("the session is done")
		default:
			return ctx.Err()
		}
	})
	m.events <- etcdEvent{n, false}
	<-ctx.Done()
	held.end()
	if m.session.Ctx().Err() == nil {
		_ = election.Resign(m.client.Ctx()) // or the key ends with the session
	}
}

// stopAll ends all campaigns, and waits until they are over.
func (m *etcdMember) stopAll() {
	for _, c := range m.campaigns {
		c.stop()
	}
	for len(m.campaigns) > 0 {
		if e := <-m.events; e.over {
			delete(m.campaigns, e.partition)
		}
	}
}
