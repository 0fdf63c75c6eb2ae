package console

import (
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/lists"
	"remote-agent/internal/messages"
	"remote-agent/internal/pattern"
	"remote-agent/internal/terminal"
)

// maxCandidates is how many names a completion offers.
const maxCandidates = 100

// mention is a file that is sent with a message: @path, or @"a path with spaces".
var mention = pattern.Lazy(`(?:^|\s)@(?:"([^"\n]+)"|(\S+))`)

// attachments returns the files that a text names with @, and what there is to tell of
// other names: what is written like a file and is none, and a file whose name was pasted,
// which is not sent. Other words with @ are words.
func attachments(in terminal.Input) (files []messages.Attachment, notes []string) {
	for _, at := range mention.FindAllStringSubmatchIndex(in.Text, -1) {
		start, end := at[4], at[5]
		quoted := start < 0
		mark := start - len("@")
		if quoted {
			start, end = at[2], at[3]
			mark = start - len(`@"`)
		}
		name := in.Text[start:end]
		file, ok := attachment(name)
		if !ok && !quoted {
			name = strings.TrimRight(name, ".,;:!?)") // of the sentence
			file, ok = attachment(name)
		}
		switch pasted := in.IsPasted(mark, at[1]); {
		case ok && pasted:
			notes = append(notes, fmt.Sprintf("%s was not sent, because its name is in text that was pasted. Type %s to send it.", name, mentioned(name)))
		case ok && !slices.Contains(files, file):
			files = append(files, file)
		case !ok && !pasted && (quoted || strings.ContainsAny(name, `/\`)):
			notes = append(notes, fmt.Sprintf("There is no file %s; it was sent as text.", in.Text[start:end]))
		}
	}
	return files, notes
}

// sentWith says which files went with a message; nothing if none did.
func sentWith(files []messages.Attachment) string {
	each := lists.Map(files, func(f messages.Attachment) string { return f.Name + ", " + size(f.Size) })
	if len(each) == 0 {
		return ""
	}
	return "Sent with it: " + strings.Join(each, "; ")
}

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 999_500:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
}

func attachment(name string) (messages.Attachment, bool) {
	path, err := filepath.Abs(atHome(name))
	if err != nil {
		return messages.Attachment{}, false
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return messages.Attachment{}, false
	}
	kind, _, _ := strings.Cut(mime.TypeByExtension(filepath.Ext(path)), ";")
	return messages.Attachment{Name: filepath.Base(path), MediaType: kind, Size: info.Size(), Source: path}, true
}

// atHome resolves ~/.
func atHome(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return name
}

// pastedPath makes a mention of the path of a file, as terminals paste it when a file
// is dropped on them: quoted, or with backslashes before spaces. That, and a mention that
// is all of what was pasted, was meant by the person. Other text stays as it is, and is
// somebody else's.
func pastedPath(text string) (insert string, typed bool) {
	path := strings.TrimSpace(text)
	if len(path) > 1024 || strings.Contains(path, "\n") {
		return text, false
	}
	if path != "" && mention.FindString(path) == path {
		return text, true
	}
	if n := len(path); n > 2 && (path[0] == '\'' || path[0] == '"') && path[n-1] == path[0] {
		path = path[1 : n-1]
	} else if filepath.Separator == '/' {
		path = strings.ReplaceAll(path, `\ `, " ")
	}
	path = strings.TrimPrefix(path, "file://")
	if !filepath.IsAbs(path) {
		return text, false
	}
	if _, ok := attachment(path); !ok {
		return text, false
	}
	return mentioned(path) + " ", true
}

// mentioned writes a path as a mention.
func mentioned(path string) string {
	if strings.ContainsAny(path, " \t") {
		return `@"` + path + `"`
	}
	return "@" + path
}

// completer completes commands at the start of a text, and the paths of files behind
// an @.
func completer(commands []string) func(before string) (from int, candidates []string) {
	return func(before string) (int, []string) {
		if strings.HasPrefix(before, "/") && !strings.ContainsAny(before, " \n") {
			var found []string
			for _, name := range commands {
				if strings.HasPrefix("/"+name, before) {
					found = append(found, "/"+name)
				}
			}
			return 0, found
		}
		if from := strings.LastIndex(before, `@"`); from >= 0 && !strings.ContainsAny(before[from+2:], "\n\"") {
			return from, paths(before[from+2:])
		}
		from := strings.LastIndexAny(before, " \n\t") + 1
		path, ok := strings.CutPrefix(before[from:], "@")
		if !ok {
			return len(before), nil
		}
		return from, paths(path)
	}
}

// typable reports whether the name of a file can be put on the screen as it is, and is
// understood in a mention. Who names a file decides on every byte of it.
func typable(name string) bool {
	return utf8.ValidString(name) && terminal.Clean(name) == name && !strings.ContainsAny(name, "\n\t\"")
}

// paths returns the mentions of the files and folders whose path begins like this.
func paths(typed string) []string {
	folder, start := filepath.Split(typed)
	entries, err := os.ReadDir(filepath.Clean(atHome(folder)))
	if folder == "" {
		entries, err = os.ReadDir(".")
	}
	if err != nil {
		return nil
	}
	var found []string
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, start) || start == "" && strings.HasPrefix(name, ".") || !typable(name) {
			continue
		}
		path := folder + name
		if info, err := os.Stat(filepath.Join(atHome(folder), name)); err == nil && info.IsDir() {
			path += "/"
		}
		if !strings.Contains(path, " ") {
			path = "@" + path
		} else if path = `@"` + path; !strings.HasSuffix(path, "/") {
			path += `"`
		}
		if found = append(found, path); len(found) == maxCandidates {
			break
		}
	}
	return found
}
