package console

import (
	"mime"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"remote-agent/internal/messages"
)

// maxCandidates is how many names a completion offers.
const maxCandidates = 100

// mention is a file that is sent with a message: @path, or @"a path with spaces".
var mention = regexp.MustCompile(`(?:^|\s)@(?:"([^"\n]+)"|(\S+))`)

// attachments returns the files that a text names with @, and what is written like a
// file and is none. Other words with @ are words.
func attachments(text string) (files []messages.Attachment, missing []string) {
	for _, m := range mention.FindAllStringSubmatch(text, -1) {
		name := m[1] + m[2]
		file, ok := attachment(name)
		if !ok && m[2] != "" {
			file, ok = attachment(strings.TrimRight(name, ".,;:!?)")) // of the sentence
		}
		switch {
		case ok && !slices.Contains(files, file):
			files = append(files, file)
		case !ok && (m[1] != "" || strings.ContainsAny(name, `/\`)):
			missing = append(missing, name)
		}
	}
	return files, missing
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
// is dropped on them: quoted, or with backslashes before spaces. Other text stays.
func pastedPath(text string) string {
	path := strings.TrimSpace(text)
	if len(path) > 1024 || strings.Contains(path, "\n") {
		return text
	}
	if n := len(path); n > 2 && (path[0] == '\'' || path[0] == '"') && path[n-1] == path[0] {
		path = path[1 : n-1]
	} else if filepath.Separator == '/' {
		path = strings.ReplaceAll(path, `\ `, " ")
	}
	path = strings.TrimPrefix(path, "file://")
	if !filepath.IsAbs(path) {
		return text
	}
	if _, ok := attachment(path); !ok {
		return text
	}
	return mentioned(path) + " "
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
		from := strings.LastIndexAny(before, " \n\t") + 1
		path, ok := strings.CutPrefix(before[from:], "@")
		if !ok {
			return len(before), nil
		}
		return from, paths(path)
	}
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
		if !strings.HasPrefix(name, start) || start == "" && strings.HasPrefix(name, ".") || strings.ContainsAny(name, "\n\"") {
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
