// Package redact removes credentials from text that leaves the program: log
// lines, error texts, chat messages, stored tool output.
//
// It knows the configured secrets word for word and the shapes of well-known
// tokens. It is a leaf and imports only the standard library.
package redact

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Mask is what stands in the place of a credential.
const Mask = "[redacted]"

// MinLength is the shortest secret, in bytes, that is searched for word for
// word. Shorter ones occur in ordinary text too often.
const MinLength = 6

// shape is a kind of token that can be recognized without knowing it.
type shape struct {
	// hints are substrings of which one is in every match. Most texts have
	// none, and looking for them is far cheaper than the expression.
	hints   []string
	pattern *regexp.Regexp
	replace string
}

// shapes follow the token formats that the services document (platform
// contracts S31).
var shapes = []shape{
	{
		hints: []string{"-----BEGIN "},
		// A key that is cut off, as in a stream or a shortened text, has no end
		// line: everything to the end of the text goes.
		pattern: regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`),
		replace: Mask,
	},
	{
		hints:   []string{"sk-"},
		pattern: regexp.MustCompile(`\bsk-[A-Za-z0-9_-]{16,}`),
		replace: Mask,
	},
	{
		hints:   []string{"ghp_", "gho_", "ghu_", "ghr_", "ghs_", "github_pat_"},
		pattern: regexp.MustCompile(`\b(?:gh[pour]_[A-Za-z0-9]{20,}|ghs_[A-Za-z0-9._-]{20,}|github_pat_[A-Za-z0-9_]{20,})`),
		replace: Mask,
	},
	{
		hints:   []string{"xox", "xapp-"},
		pattern: regexp.MustCompile(`\b(?:xox[a-z]-|xapp-)[A-Za-z0-9-]{10,}`),
		replace: Mask,
	},
	{
		hints:   []string{"AKIA", "ASIA"},
		pattern: regexp.MustCompile(`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`),
		replace: Mask,
	},
	{
		hints:   []string{"eyJ"},
		pattern: regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`),
		replace: Mask,
	},
	{
		// No word boundary in front: in a Bot API address the token follows
		// the letters "bot".
		hints:   []string{":"},
		pattern: regexp.MustCompile(`[0-9]{8,10}:[A-Za-z0-9_-]{35}`),
		replace: Mask,
	},
	{
		// The password of an address, whatever its scheme. A password may hold
		// an unescaped "@": the last one before the path counts.
		hints:   []string{"://"},
		pattern: regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]*://[^\s/:@"']*):[^\s/"']+@`),
		replace: "${1}:" + Mask + "@",
	},
	{
		// Our own keys of the HTTP API.
		hints:   []string{"rak_"},
		pattern: regexp.MustCompile(`\brak_[a-z0-9]{4,}_[a-z0-9]{10,}`),
		replace: Mask,
	},
	{
		hints:   []string{"earer "},
		pattern: regexp.MustCompile(`\b([Bb]earer )[A-Za-z0-9._~+/=-]{8,}`),
		replace: "${1}" + Mask,
	},
}

// Redactor replaces credentials. It is safe for concurrent use; a nil Redactor
// knows the shapes only.
type Redactor struct {
	known *strings.Replacer
}

// New returns a Redactor that knows secrets word for word, as they are, escaped
// for an address, and in base64. Secrets shorter than MinLength are left out.
func New(secrets ...string) *Redactor {
	var forms []string
	for _, s := range secrets {
		if len(s) < MinLength {
			continue
		}
		forms = append(forms, s, url.QueryEscape(s), url.PathEscape(s),
			base64.StdEncoding.EncodeToString([]byte(s)),
			base64.URLEncoding.EncodeToString([]byte(s)),
			base64.RawStdEncoding.EncodeToString([]byte(s)),
			base64.RawURLEncoding.EncodeToString([]byte(s)))
	}
	// At one place strings.Replacer takes the first pair that fits: the longer
	// form has to come first, or its tail would stay.
	slices.SortFunc(forms, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	forms = slices.Compact(forms)
	if len(forms) == 0 {
		return &Redactor{}
	}
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f, Mask)
	}
	return &Redactor{known: strings.NewReplacer(pairs...)}
}

// String returns s without credentials. Redacting twice changes nothing more.
func (r *Redactor) String(s string) string {
	if r != nil && r.known != nil {
		s = r.known.Replace(s)
	}
	for _, sh := range shapes {
		if !containsAny(s, sh.hints) {
			continue
		}
		s = sh.pattern.ReplaceAllString(s, sh.replace)
	}
	return s
}

func containsAny(s string, hints []string) bool {
	for _, h := range hints {
		if strings.Contains(s, h) {
			return true
		}
	}
	return false
}
