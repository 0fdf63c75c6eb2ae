package platform_test

import (
	"testing"

	"remote-agent/internal/platform"
)

// What is merged under a title closes no issue that nobody meant to close.
func TestClosingNothing(t *testing.T) {
	t.Parallel()
	for title, want := range map[string]string{
		"Add a limiter, fixes #9":                         "Add a limiter, fixes no. 9",
		"Closes: #9 and resolved #12":                     "Closes: no. 9 and resolved no. 12",
		"does it fix GH-9?":                               "does it fix no. 9?",
		"fixes acme/web#9":                                "fixes acme/web no. 9",
		"fixes https://github.com/acme/web/issues/9":      "fixes acme/web no. 9",
		"Fixed https://ghe.example.com/acme/web/pull/9 x": "Fixed acme/web no. 9 x",
		"see #9, prefixes #9, fix the issue/9 page":       "see #9, prefixes #9, fix the issue/9 page",
		"fixes https://github.com/acme/web/blob/main/a.c": "fixes https://github.com/acme/web/blob/main/a.c",
	} {
		if got := platform.ClosingNothing(title); got != want {
			t.Errorf("%q becomes %q, want %q", title, got, want)
		}
	}
}
