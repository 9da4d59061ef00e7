package drive

import (
	"cmp"

	"tare/internal/record"
)

const (
	fallbackMemory = 4 << 30 // bytes, where the machine does not tell how much it has
	quietMemory    = 2 << 30 // bytes of heap in which no run needs the collector
)

// quietLimit is the heap, in bytes, at which the garbage collector works all the same, of a process that may have so much
// memory in all and whose plan takes up so much already. A run as it should be comes nowhere near it. Replies of many
// megabytes do, and must not take the memory of a server on the same machine.
func quietLimit(all, plan int64) int64 {
	return min(max(quietMemory, all/8, 2*plan+quietMemory/2), all/2)
}

// allMemory is how many bytes this process may have.
func allMemory() int64 { return cmp.Or(record.Environ().MemoryMiB<<20, fallbackMemory) }
