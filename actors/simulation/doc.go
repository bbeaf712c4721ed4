// Package simulation runs processes with locks, their connections and the embedded server in
// virtual time, from one seed. It has no API: its tests are the simulation. README.md in its folder
// describes what runs, what is checked, and how to repeat a failing seed.
package simulation
