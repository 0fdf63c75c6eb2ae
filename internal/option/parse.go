package option

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"remote-agent/internal/pattern"
)

// Text takes any text.
func Text(to *string) Parser {
	return func(text string) error {
		if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
			return errors.New("is not valid UTF-8 text")
		}
		*to = text
		return nil
	}
}

// Secrecy takes a secret of one word.
func Secrecy(to *Secret) Parser {
	return func(text string) error {
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return errors.New("contains a space or a line break: copy it again")
		}
		*to = NewSecret(text)
		return nil
	}
}

// Prefixed takes a token whose kind shows in its first letters.
func Prefixed(prefix string, to *Secret) Parser {
	return func(text string) error {
		if !strings.HasPrefix(text, prefix) || strings.ContainsAny(text, " \t\n") {
			return fmt.Errorf("is not the right kind of token: it must start with %s", prefix)
		}
		*to = NewSecret(text)
		return nil
	}
}

// Int takes a whole number within limits.
func Int(to *int, low, high int) Parser {
	return func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < low || n > high {
			return fmt.Errorf("is %q: use a whole number from %d to %d", text, low, high)
		}
		*to = n
		return nil
	}
}

// The limits of Rate besides 0: a message in 100 seconds, and more than any platform
// takes. Far below the first, nothing is ever sent.
const minRate, maxRate = 0.01, 1_000_000

// Rate takes a number of messages per second; 0 is no limit.
func Rate(to *float64) Parser {
	return func(text string) error {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n != 0 && !(n >= minRate && n <= maxRate) {
			return fmt.Errorf("is %q: use messages per second from %v to %v, such as 30 or 0.5, or 0 for no limit", text, minRate, maxRate)
		}
		*to = n
		return nil
	}
}

// Duration takes a time with its unit within limits.
func Duration[D ~int64](to *D, low, high time.Duration) Parser {
	return func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d < low || d > high {
			return fmt.Errorf("is %q: use a time from %v to %gh with its unit, such as 30s, 10m or 1h", text, low, high.Hours())
		}
		*to = D(d)
		return nil
	}
}

// Choice takes one of a few words, in any case, and hands it over in lower case.
func Choice(set func(v string), choices ...string) Parser {
	return func(text string) error {
		v := strings.ToLower(text)
		if !slices.Contains(choices, v) {
			return fmt.Errorf("is %q: use %s", text, OrList(choices))
		}
		set(v)
		return nil
	}
}

// OrList writes "a", "a or b" or "a, b or c".
func OrList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// URL takes an http or https address without credentials, and keeps it without a
// trailing slash.
func URL(to *string) Parser {
	return func(text string) error {
		u, err := url.Parse(text)
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
			return errors.New("is not a valid address: use http:// or https:// with a host")
		}
		if u.User != nil {
			return errors.New("contains a user name or password: remove it")
		}
		if u.RawQuery != "" || u.Fragment != "" {
			return errors.New(`contains "?" or "#": use the address without them`)
		}
		*to = strings.TrimRight(text, "/")
		return nil
	}
}

// PlainHTTPAbroad reports whether an address is unencrypted and leaves the machine.
func PlainHTTPAbroad(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

// Owners takes a list of people who own the bot, by ids of a form.
func Owners(form pattern.Pattern, what string, to *[]string) Parser {
	return func(text string) error {
		var ids []string
		for _, f := range List(text) {
			if !form.MatchString(f) {
				return fmt.Errorf("contains %q, which is not an ID: names can change hands, so use %s", f, what)
			}
			if !slices.Contains(ids, f) {
				ids = append(ids, f)
			}
		}
		if len(ids) == 0 {
			return errors.New("is empty: list IDs separated by commas, or remove the option")
		}
		*to = ids
		return nil
	}
}

// List splits a text at commas and spaces.
func List(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
}
