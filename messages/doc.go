// Package messages holds the protocol between the actors. lock.proto has the messages between
// an owner and a lock actor; bridge.proto has those between a lock actor and the bridge.
//
// The Go code is generated from them by go generate ./messages: the message types and, for
// each service, a handler interface, a dispatch function by message type, and a typed
// reference. errors.go makes Reason, Refused, Lost and Failed Go errors.
package messages

//go:generate go run ../gen -I actorlock=. .
