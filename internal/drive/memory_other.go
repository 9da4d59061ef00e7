//go:build !linux

package drive

func allMemory() int64 { return fallbackMemory }
