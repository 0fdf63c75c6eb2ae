package messages_test

import (
	"testing"

	"remote-agent/internal/messages"
)

func TestPictureKind(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"\x89PNG\r\n\x1a\n...":           "png",
		"\xff\xd8\xff\xe0...":            "jpeg",
		"GIF87a":                         "gif",
		"GIF89a...":                      "gif",
		"RIFF\x04\x00\x00\x00WEBPVP8 ":   "webp",
		"RIFF\x04\x00\x00\x00WAVE":       "",
		"RIFF\x04\x00\x00\x00WEB":        "",
		"":                               "",
		"<svg onload='alert(1)'/>":       "",
		"\x89PNG":                        "",
		"%PDF-1.7":                       "",
		"GIF88a":                         "",
		"<html>\x89PNG\r\n\x1a\n</html>": "",
	} {
		if got := messages.PictureKind([]byte(data)); got != want {
			t.Errorf("%q is %q, want %q", data, got, want)
		}
	}
}
