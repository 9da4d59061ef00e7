package dialect

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

const maxEvidence = 4 << 10 // bytes

// Mask makes text that a server sent fit for a record: the secrets given and what looks like a key or token masked,
// valid UTF-8, at most 4 KiB.
func Mask(s string, secrets ...string) string {
	// Twice the length is masked, so that no secret is cut in half before it is known for one.
	s = strings.ToValidUTF8(s[:min(len(s), 2*maxEvidence)], "\uFFFD")
	for _, secret := range secrets {
		if len(secret) >= 4 {
			s = strings.ReplaceAll(s, secret, "***")
		}
	}
	s = keyValue.ReplaceAllString(s, "$1***")
	s = bearer.ReplaceAllStringFunc(s, maskBearer)
	s = knownKey.ReplaceAllString(s, "$1***")
	return cutRunes(strings.TrimSpace(s), maxEvidence)
}

var (
	bearer   = regexp.MustCompile(`(?i)\bbearer\s+[a-z0-9._~+/=-]{6,}`)
	keyValue = regexp.MustCompile(`(?i)((?:api[-_ ]?key|access[-_]?token|authorization|password|secret)\\?["']?\s*[:=]\s*\\?["']?)(?:(?:basic|bearer)\s+)?[^\s"',}&\\*]{4,}`)
	knownKey = regexp.MustCompile(`(\b(?:sk|pk|rk|hf|gsk|xai|nvapi|ghp|glpat)[-_]|\bAIza|://[^/\s:@"]*:)[A-Za-z0-9_*.%-]{8,}`)
)

// maskBearer spares words such as "bearer authentication": a token has a digit or is long.
func maskBearer(s string) string {
	if len(s) < 32 && !strings.ContainsAny(s, "0123456789") {
		return s
	}
	return s[:len("bearer")] + " ***"
}

// cutRunes shortens s to at most n bytes without cutting a rune.
func cutRunes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
