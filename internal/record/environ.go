package record

import "runtime"

// Environ describes the machine as this process may use it. What a system does not tell stays empty.
func Environ() Environment {
	e := Environment{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
	inspect(&e)
	return e
}
