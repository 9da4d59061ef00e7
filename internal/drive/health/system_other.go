//go:build !unix

package health

import "tare/internal/record"

// system is empty: nothing is known here but what the runtime tells.
type system struct{}

func readSystem() system { return system{} }

func (*system) since(*system, *record.Health) {}
