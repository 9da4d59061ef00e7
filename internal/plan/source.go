package plan

import "strings"

// The places that a header's value may be kept in, instead of being written down.
const (
	SourceEnv  = "env"  // an environment variable
	SourceFile = "file" // the first line of a file
)

// Source says where the value of a header is kept if it is written as "env:NAME" or "file:PATH".
func Source(value string) (kind, name string, elsewhere bool) {
	kind, name, elsewhere = strings.Cut(value, ":")
	if !elsewhere || kind != SourceEnv && kind != SourceFile {
		return "", "", false
	}
	return kind, name, true
}
