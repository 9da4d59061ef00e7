//go:build !linux

package drive

func memoryLimit() int64 { return fallbackMemory }
