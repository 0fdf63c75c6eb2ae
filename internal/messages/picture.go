package messages

import "strings"

// PictureKind returns png, jpeg, gif or webp for a picture that the programs of people show
// and that cannot hold a script, by the beginning of its data; else nothing.
func PictureKind(data []byte) string {
	head := string(data[:min(len(data), 12)])
	switch {
	case strings.HasPrefix(head, "\x89PNG\r\n\x1a\n"):
		return "png"
	case strings.HasPrefix(head, "\xff\xd8\xff"):
		return "jpeg"
	case strings.HasPrefix(head, "GIF87a"), strings.HasPrefix(head, "GIF89a"):
		return "gif"
	case len(head) == 12 && head[:4] == "RIFF" && head[8:] == "WEBP":
		return "webp"
	}
	return ""
}
