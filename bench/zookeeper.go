package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"
)

// packets returns the number of messages that the ZooKeeper servers of that name have received and sent so far.
func (e *environment) packets(name string) (float64, error) {
	sum := 0.0
	for addr := range strings.SplitSeq(strings.SplitN(e.addrs[name], "/", 2)[0], ",") {
		reply, err := fourLetter(addr, "mntr")
		if err != nil {
			return 0, err
		}
		n, err := packetsIn(reply)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

func packetsIn(mntr string) (float64, error) {
	sum, found := 0.0, 0
	for line := range strings.Lines(mntr) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if key != "zk_packets_received" && key != "zk_packets_sent" {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, err
		}
		sum += n
		found++
	}
	if found != 2 {
		return 0, errors.New("mntr has no packets: " + strings.TrimSpace(mntr))
	}
	return sum, nil
}

// warmServer has ZooKeeper do the work of locks, but of no peer, until its processes have run for a time in all: a new virtual
// machine compiles meanwhile, and would be slow for those that are measured first.
func (e *environment) warmServer(ctx context.Context, name string, length time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, 4*setUpTime)
	defer cancel()
	conn, err := dialZooKeeper(ctx, e.addrs[name])
	if err != nil {
		return err
	}
	defer conn.Close()
	var clients errgroup.Group
	warmed := func() bool { return e.serverTime(name) >= length || ctx.Err() != nil }
	for i := range 16 {
		clients.Go(func() error {
			dir := fmt.Sprintf("%s/warm-%d", e.root, i)
			err := makeDirectory(conn, dir)
			for err == nil && !warmed() {
				err = warm(conn, dir)
			}
			return err
		})
	}
	return clients.Wait()
}

// warm makes nodes in a directory, watches them, and deletes them, one by one and in a transaction.
func warm(conn *zk.Conn, dir string) error {
	create := &zk.CreateRequest{Path: dir + "/n-", Acl: zk.WorldACL(zk.PermAll), Flags: zk.FlagEphemeralSequential}
	one, err := conn.Create(create.Path, nil, create.Flags, create.Acl)
	if err != nil {
		return err
	}
	if _, _, err := conn.Children(dir); err != nil {
		return err
	}
	if _, _, _, err := conn.GetW(one); err != nil {
		return err
	}
	results, err := conn.Multi(create, create, create, create, &zk.DeleteRequest{Path: one, Version: -1})
	if err != nil {
		return err
	}
	var deletes []any
	for _, r := range results[:4] {
		deletes = append(deletes, &zk.DeleteRequest{Path: r.String, Version: -1})
	}
	_, err = conn.Multi(deletes...)
	return err
}

// cleanZooKeeper removes the nodes of the run from a ZooKeeper that bench has not started.
func (e *environment) cleanZooKeeper() error {
	ctx, cancel := context.WithTimeout(context.Background(), setUpTime)
	defer cancel()
	conn, err := dialZooKeeper(ctx, e.addrs["zookeeper"])
	if err != nil {
		return err
	}
	defer conn.Close()
	return removeTree(conn, e.root)
}

// removeTree removes a node and all nodes below it. ZooKeeper may remove empty containers before.
func removeTree(conn *zk.Conn, path string) error {
	children, _, err := conn.Children(path)
	for _, name := range children {
		if err := removeTree(conn, path+"/"+name); err != nil {
			return err
		}
	}
	if err == nil {
		err = conn.Delete(path, -1)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}
