package slack

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/pattern"
	"remote-agent/internal/platform"
)

const (
	// Code that is longer than one of these is posted as a file. Slack folds long
	// messages, and the splitter would cut it.
	longCode      = 3500 // characters
	longCodeLines = 60

	// maxFiles is how many files one answer is accompanied by; what is beyond
	// stays in the text.
	maxFiles = 10

	// maxFenceIndent bounds how far a code block is indented: within lists within
	// lists.
	maxFenceIndent = 12
)

// codeBlock is a fenced code block of a text, as positions of its lines.
type codeBlock struct {
	first, last int // with the marks; last is beyond the end
	indent      int
	info        string
	code        []string
}

func (b codeBlock) long() bool {
	if len(b.code) > longCodeLines {
		return true
	}
	n := 0
	for _, l := range b.code {
		n += utf8.RuneCountInString(l) + 1
	}
	return n > longCode
}

// Extract implements platform.Extractor: fenced code blocks become files that
// are named by their info string, the line above them, or their language.
func (a *Adapter) Extract(markdown string) (string, []platform.FilePart) {
	if !strings.Contains(markdown, "```") && !strings.Contains(markdown, "~~~") {
		return markdown, nil
	}
	lines := strings.Split(markdown, "\n")
	var files []platform.FilePart
	var out []string
	taken := map[string]bool{}
	at := 0
	for _, b := range codeBlocks(lines) {
		if len(files) == maxFiles || !b.long() {
			continue
		}
		name := unused(nameOfCode(b.info, lines[:b.first]), taken)
		files = append(files, platform.FilePart{Name: name, Data: []byte(strings.Join(b.code, "\n") + "\n")})
		out = append(out, lines[at:b.first]...)
		size := fmt.Sprintf("%d lines", len(b.code))
		if len(b.code) == 1 {
			size = "1 line"
		}
		out = append(out, fmt.Sprintf("%s📄 `%s` (%s) is attached.", strings.Repeat(" ", b.indent), name, size))
		at = b.last
	}
	if files == nil {
		return markdown, nil
	}
	return strings.Join(append(out, lines[at:]...), "\n"), files
}

// codeBlocks returns the fenced code blocks of a text, without those in quotes. A
// block that is not closed goes on to the end.
func codeBlocks(lines []string) []codeBlock {
	var all []codeBlock
	for i := 0; i < len(lines); i++ {
		mark, info, indent := fence(lines[i])
		if mark == "" {
			continue
		}
		b := codeBlock{first: i, indent: indent, info: info}
		for i++; i < len(lines); i++ {
			end, rest, _ := fence(lines[i])
			if rest == "" && len(end) >= len(mark) && end[0] == mark[0] {
				i++
				break
			}
			b.code = append(b.code, unindented(lines[i], indent))
		}
		b.last = i
		i--
		all = append(all, b)
	}
	return all
}

// fence reads a line that begins or ends a code block.
func fence(line string) (mark, info string, indent int) {
	line = strings.TrimRight(line, " \t\r")
	body := strings.TrimLeft(line, " ")
	indent = len(line) - len(body)
	if indent > maxFenceIndent || body == "" || body[0] != '`' && body[0] != '~' {
		return "", "", 0
	}
	info = strings.TrimLeft(body, body[:1])
	mark = body[:len(body)-len(info)]
	if len(mark) < 3 || mark[0] == '`' && strings.Contains(info, "`") {
		return "", "", 0
	}
	return mark, strings.TrimSpace(info), indent
}

// unindented takes up to n spaces from the start of a line.
func unindented(line string, n int) string {
	for n > 0 && strings.HasPrefix(line, " ") {
		line, n = line[1:], n-1
	}
	return strings.TrimSuffix(line, "\r")
}

var (
	// fileName is what looks like the name of a file, with or without its path.
	fileName = pattern.Lazy(`^[A-Za-z0-9_.@/-]{0,200}[A-Za-z0-9_-]\.[A-Za-z0-9]{1,10}$`)

	// titled is how an info string names a file.
	titled = pattern.Lazy(`^(?:title|file|filename|path|name)=`)

	// caption is a line above a code block that says no more than a file's name.
	caption = pattern.Lazy("^[#>*_` \t]*([A-Za-z0-9_.@/-]+)[*_`: \t]*$")

	language = pattern.Lazy(`^[a-z0-9]{1,5}$`)
)

// endings are the names of files by language, where they are not the language
// itself.
var endings = map[string]string{
	"bash": "sh", "c++": "cpp", "console": "txt", "csharp": "cs", "c#": "cs", "docker": "Dockerfile", "dockerfile": "Dockerfile",
	"elixir": "ex", "erlang": "erl", "fish": "sh", "golang": "go", "haskell": "hs", "javascript": "js", "jsonc": "json", "julia": "jl",
	"jsx": "jsx", "kotlin": "kt", "make": "Makefile", "makefile": "Makefile", "markdown": "md", "objc": "m", "objective-c": "m",
	"ocaml": "ml", "patch": "diff", "perl": "pl", "plain": "txt", "plaintext": "txt", "postgresql": "sql", "powershell": "ps1",
	"protobuf": "proto", "python": "py", "python3": "py", "ruby": "rb", "rust": "rs", "scala": "scala", "shell": "sh", "sqlite": "sql",
	"swift": "swift", "terraform": "tf", "text": "txt", "typescript": "ts", "yaml": "yaml", "zsh": "sh",
}

// nameOfCode returns a name for a code block, which stands after the lines above.
func nameOfCode(info string, above []string) string {
	words := strings.Fields(info)
	for _, w := range words {
		w = strings.Trim(titled.ReplaceAllString(w, ""), `"'{}`)
		if fileName.MatchString(w) {
			return path.Base(w)
		}
	}
	for i := len(above) - 1; i >= max(0, len(above)-2); i-- {
		if m := caption.FindStringSubmatch(above[i]); m != nil && fileName.MatchString(m[1]) {
			return path.Base(m[1])
		}
		if strings.TrimSpace(above[i]) != "" {
			break
		}
	}
	ending := "txt"
	if len(words) > 0 {
		lang := strings.ToLower(strings.Trim(words[0], "{}."))
		if known, ok := endings[lang]; ok {
			ending = known
		} else if language.MatchString(lang) {
			ending = lang
		}
	}
	switch ending {
	case "Dockerfile", "Makefile":
		return ending
	case "diff":
		return "changes.diff"
	default:
		return "code." + ending
	}
}

// unused returns a name that is not taken, and takes it.
func unused(name string, taken map[string]bool) string {
	ending := path.Ext(name)
	stem := strings.TrimSuffix(name, ending)
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s-%d%s", stem, n, ending)
	}
	taken[name] = true
	return name
}
