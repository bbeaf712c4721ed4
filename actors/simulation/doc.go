// Package simulation runs processes with locks, their connections and the embedded server
// in virtual time, from one seed. It has no API: its tests are the simulation. See README.md
// in its folder.
package simulation
