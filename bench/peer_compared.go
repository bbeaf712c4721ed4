//go:build compare

package main

// A comparison builds this bench with the library of earlier commits, which have no package simplelock.
var simplePeers []peer

// Earlier commits have no package remote.
var remotePeers []peer

// Earlier commits have no Partitions.
var joinActorlock joinGroup
