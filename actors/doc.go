// Package actors is the public face of actorlock: distributed locks on Apache
// ZooKeeper, fair, re-entrant by owner, with fencing tokens.
//
// Connect gives Locks, Locks gives a Mutex for a path. Acquire returns a Future to
// select on, Lock blocks; both end in a Grant, the proof of holding, which knows its
// fencing Token and tells when it is lost. Actors of a protoactor system can send
// the messages of lock.proto to a lock's PID instead.
//
// Behind a Mutex stands one actor per path and process (lock.go). It feeds what
// happens to the pure queue.State and performs what that asks for: requests to the
// bridge, which owns the ZooKeeper connection, and answers to those who asked.
package actors
