package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"tare/internal/plan"
)

// secret is a value that is kept outside of the spec. Its place may be shown, the value never.
type secret struct {
	value string
	place string // "environment variable NAME" or "file PATH"
}

// longestSecret is the most bytes that the first line of a file may have.
const longestSecret = 64 << 10

// apiKey reads the key from its file, or else from its environment variable. It is empty if neither is named, or the variable
// not set.
func apiKey(t plan.Target) (secret, error) {
	switch {
	case t.APIKeyFile != "":
		return fromFile("target.api_key_file", t.APIKeyFile)
	case t.APIKeyEnv != "":
		return fromEnv("target.api_key_env", t.APIKeyEnv)
	}
	return secret{}, nil
}

// headerValues are the user's headers, with the values that are kept elsewhere.
func headerValues(given map[string]string) (map[string]string, error) {
	values := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		value := given[name]
		kind, at, elsewhere := plan.Source(value)
		key := "target.headers." + name
		var s secret
		var err error
		switch {
		case !elsewhere:
			values[name] = value
			continue
		case kind == plan.SourceFile:
			s, err = fromFile(key, at)
		default:
			s, err = fromEnv(key, at)
		}
		if err == nil && s.value == "" {
			err = misused(fmt.Errorf("%s: the %s is not set", key, s.place), "")
		}
		if err != nil {
			return nil, err
		}
		values[name] = s.value
	}
	return values, nil
}

func fromEnv(key, variable string) (secret, error) {
	return clean(key, secret{os.Getenv(variable), "environment variable " + variable})
}

// fromFile reads the first line of a file.
func fromFile(key, path string) (secret, error) {
	f, err := os.Open(path)
	if err != nil {
		return secret{}, misused(fmt.Errorf("%s: %w", key, err), "")
	}
	defer f.Close()
	line, err := bufio.NewReader(io.LimitReader(f, longestSecret)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return secret{}, misused(fmt.Errorf("%s: %w", key, err), "")
	}
	if strings.TrimSpace(line) == "" {
		return secret{}, misused(fmt.Errorf("%s: the first line of %s is empty", key, path), "the first line of the file must be the bare value")
	}
	return clean(key, secret{line, "file " + path})
}

// clean cuts the space around a secret off. A line break within it would begin another header.
func clean(key string, s secret) (secret, error) {
	s.value = strings.TrimSpace(s.value)
	if strings.ContainsFunc(s.value, unicode.IsControl) || !utf8.ValidString(s.value) {
		return secret{}, misused(fmt.Errorf("%s: the value in the %s must not have line breaks or other control characters", key, s.place),
			"it must be the bare value, on one line")
	}
	return s, nil
}
