package pages

import (
	"strings"
)

// typed is the text of a form as a person wrote it: browsers end lines in their own way, and
// what is no text goes nowhere.
func (r *request) typed() string {
	text := strings.ReplaceAll(strings.ToValidUTF8(r.PostForm.Get("text"), "\uFFFD"), "\x00", "")
	return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
}
