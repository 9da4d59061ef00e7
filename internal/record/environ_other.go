//go:build !linux && !darwin && !windows

package record

func inspect(*Environment) {}
