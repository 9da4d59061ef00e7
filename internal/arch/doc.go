// Package arch holds the tests of the architecture: who may import whom, and what may be called where. It reads the sources
// of the whole module; docs/architecture.md draws the same picture for people.
package arch
