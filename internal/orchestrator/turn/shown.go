package turn

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	"remote-agent/internal/tool"
)

// maxLooked is how many pictures of one result the model is shown.
const maxLooked = 10

// show shows what a tool returned besides its text: pictures to people and to the model, a file
// to the model. It returns what the result says of that, the files that come with it, and whether
// the tool failed because its file cannot be shown.
func (h *host) show(ctx context.Context, shown tool.Shown) (said string, files []messages.Attachment, failed bool) {
	var seen []string
	more := 0
	for _, data := range shown.Pictures {
		h.mu.Lock()
		name, show := h.gallery.Add(data)
		h.mu.Unlock()
		if name == "" {
			continue
		}
		if show && h.showPeople(ctx, assistant.FileMade{Name: name, Data: data}) {
			seen = append(seen, name)
		}
		if len(files) == maxLooked {
			more++
			continue
		}
		files = append(files, h.look(ctx, tool.File{
			Name: name, MediaType: "image/" + messages.PictureKind(data),
			Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		})...)
	}
	if f := shown.File; f != nil {
		for _, a := range h.look(ctx, *f) {
			if failed = a.File == ""; failed {
				said += fmt.Sprintf("\n[it cannot be shown: %s]", a.Note)
				continue
			}
			files = append(files, a)
		}
	}
	if len(seen) > 0 {
		said += "\n[shown to the person: " + strings.Join(seen, ", ") + "]"
	}
	if more > 0 {
		said += fmt.Sprintf("\n[%d more pictures are left out: you are shown the first %d of a result]", more, maxLooked)
	}
	return said, h.withData(ctx, files), failed
}

// showPeople reports whether people were shown a picture.
func (h *host) showPeople(ctx context.Context, made assistant.FileMade) bool {
	can, err := h.r.fileMade(ctx, made)
	if err != nil {
		h.r.w.o.config.Log.WarnContext(ctx, "could not show what a tool returned", "name", made.Name, "err", err)
	}
	return can && err == nil
}

// look has a file that a tool found looked at and kept, as what people attach is. What comes of it
// has a Note if the model cannot be given it. Where no files are kept there is nothing.
func (h *host) look(ctx context.Context, f tool.File) []messages.Attachment {
	files := h.r.w.o.config.Files
	if files == nil {
		return nil
	}
	a := files.Take(ctx, messages.Attachment{Name: h.r.w.o.redact(f.Name), MediaType: f.MediaType}, f.Open)
	if a.Text = ""; a.File == "" {
		a.Note = cmp.Or(a.Note, "it is no picture or document")
	}
	return []messages.Attachment{a}
}

// withData returns files as the next request shows them. If that fails, later ones may.
func (h *host) withData(ctx context.Context, files []messages.Attachment) []messages.Attachment {
	if len(files) == 0 {
		return nil
	}
	result := messages.Message{Role: messages.RoleTool, Blocks: []messages.Block{messages.ToolResult{}}}
	for _, a := range files {
		result.Blocks = append(result.Blocks, a)
	}
	shown, err := h.r.w.o.config.Files.Show(ctx, []messages.Message{result})
	if err != nil {
		h.r.w.o.config.Log.WarnContext(ctx, "could not show the model what a tool returned", "err", err)
		return files
	}
	return messages.FilesOf(shown[0], 0)
}
