package acp

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/messages"
)

// promptKinds is what an agent says that a prompt may hold besides text.
type promptKinds struct {
	Image           bool `json:"image"`
	EmbeddedContext bool `json:"embeddedContext"`
}

// blocks returns a prompt with the files of the request, as far as the agent takes
// them, and what to say of those that it does not.
func (g *agent) blocks(prompt string, array []messages.Message) (blocks []any, unseen string) {
	blocks = []any{map[string]string{"type": "text", "text": prompt}}
	var names []string
	for _, a := range shownFiles(array) {
		data := base64.StdEncoding.EncodeToString([]byte(a.Data))
		switch {
		case a.Width > 0 && g.prompts.Image:
			blocks = append(blocks, map[string]string{"type": "image", "data": data, "mimeType": a.MediaType})
		case a.Width == 0 && g.prompts.EmbeddedContext:
			blocks = append(blocks, map[string]any{"type": "resource", "resource": map[string]string{
				"blob": data, "mimeType": a.MediaType, "uri": "attachment://" + a.File + "/" + oneLine(a.Name, 200),
			}})
		default:
			names = append(names, oneLine(a.Name, 100))
		}
	}
	if len(names) > 0 {
		unseen = fmt.Sprintf("The agent %s cannot look at %s, so it answers without. Choose another assistant with /handoff, or describe what is in it.",
			g.a.config.Name, strings.Join(names, ", "))
	}
	return blocks, unseen
}

// shownFiles returns the files of the last request that have their data.
func shownFiles(array []messages.Message) (files []messages.Attachment) {
	for _, m := range slices.Backward(array) {
		if m.Role != messages.RoleUser {
			continue
		}
		for _, b := range m.Blocks {
			if a, ok := b.(messages.Attachment); ok && a.Data != "" {
				files = append(files, a)
			}
		}
		break
	}
	return files
}
