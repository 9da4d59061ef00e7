package drive

// fallbackMemory is the memory limit, in bytes, where the machine does not tell how much it has.
const fallbackMemory = 2 << 30
