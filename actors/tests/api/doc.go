// Package api tests the rest of the interface: what wrong calls return, Connect, Close and Drain,
// the messages of owners that are actors, tokens as texts, and what shows the state of locks to
// programs and people: Inspect, Observe, Find, Open, Participants, Stats, Monitor, Health, sessions
// and the log. It tests all of that, too, with a lock server in place of ZooKeeper (lockserver_test.go
// stands for one, without a stream).
package api
