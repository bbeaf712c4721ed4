package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"
)

// packets returns the number of messages that the ZooKeeper servers have received and sent so far.
func (e *environment) packets() (float64, error) {
	sum := 0.0
	for addr := range strings.SplitSeq(strings.SplitN(e.addrs["zookeeper"], "/", 2)[0], ",") {
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
