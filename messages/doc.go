// Package messages holds what actors say to each other: lock.proto is the
// conversation between callers and a lock, bridge.proto the one between a lock
// and the bridge. The Go code is generated from them (go generate ./messages):
// message types, and for each service a handler interface, a dispatch function
// by message type, and a typed reference.
package messages

//go:generate go run ../gen -I actorlock=. .
