package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"maps"
	"net/url"
	"slices"
	"strings"

	"remote-agent/internal/lists"
)

// knownAnchor is how much of a known text is its anchor, in bytes.
const knownAnchor = 12

// minLine is the shortest line of a secret of several lines that is searched
// for by itself, in bytes.
const minLine = 16

// knownForms returns the rules that find secrets.
func knownForms(secrets []string) []rule {
	forms := make(map[string]bool) // whether it is base64, of which a character may follow
	add := func(base64 bool, texts ...string) {
		for _, t := range texts {
			if t = see(t).text; len(t) >= MinLength {
				forms[t] = forms[t] || base64
			}
		}
	}
	for _, s := range parts(secrets) {
		add(false, written(s)...)
		add(true, encoded(s)...)
	}
	return lists.Map(slices.Sorted(maps.Keys(forms)), func(f string) rule { return known(f, forms[f]) })
}

// parts returns the secrets that are long enough, and the lines of those that
// have several: a key is often met without its first or last line.
func parts(secrets []string) []string {
	var all []string
	for _, s := range secrets {
		if len(s) < MinLength {
			continue
		}
		all = append(all, s)
		lines := strings.Split(strings.ReplaceAll(s, `\n`, "\n"), "\n")
		if len(lines) == 1 {
			continue
		}
		for _, l := range lines {
			if l = strings.TrimSpace(l); len(l) >= minLine && !strings.HasPrefix(l, "-----") {
				all = append(all, l)
			}
		}
	}
	return all
}

// written returns the ways in which a secret is written without being encoded as
// a whole.
func written(s string) []string {
	query, path := url.QueryEscape(s), url.PathEscape(s)
	forms := []string{s, query, path, lowerEscapes(query), lowerEscapes(path), html.EscapeString(s)}
	if quoted, err := json.Marshal(s); err == nil {
		forms = append(forms, strings.Trim(string(quoted), `"`))
	}
	return forms
}

// lowerEscapes writes %2F as %2f.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
		}
	}
	return string(b)
}

// encoded returns a secret in hex and in base64, also for when it is a part of
// what was encoded: then it begins at the first, second or third byte of a group
// and only the characters that it decides alone are known.
func encoded(s string) []string {
	lower := hex.EncodeToString([]byte(s))
	forms := []string{lower, strings.ToUpper(lower)}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		whole := e.EncodeToString([]byte(s))
		forms = append(forms, whole, strings.TrimRight(whole, "="))
		for before := range 3 {
			text := e.EncodeToString(append(make([]byte, before), s...))
			first, last := (8*before+5)/6, 8*(before+len(s))/6
			forms = append(forms, text[first:last])
		}
	}
	return forms
}

// known finds one text. Of base64 the character that it decides only in part, and
// the padding, go too.
func known(form string, base64 bool) rule {
	return rule{
		anchor: form[:min(len(form), knownAnchor)],
		known:  true,
		find: func(s string, at int, whole bool) match {
			rest := s[at:]
			switch {
			case strings.HasPrefix(rest, form):
				end := at + len(form)
				if base64 {
					end += min(1, run(s[end:], base64Byte))
					end += min(2, run(s[end:], equalsByte))
				}
				return match{span: span{at, end}}
			case !whole && strings.HasPrefix(form, rest):
				return match{span: span{start: at}, open: true}
			}
			return match{}
		},
	}
}
