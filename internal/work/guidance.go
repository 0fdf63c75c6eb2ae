package work

import (
	"context"
	"fmt"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"remote-agent/internal/codebase"
	"remote-agent/internal/codebase/confine"
	"remote-agent/internal/fault"
	"remote-agent/internal/orchestrator"
)

// instructionsFile takes the place of the built-in instructions in a repository.
const instructionsFile = ".agents/system.md"

// noteFiles are what repositories tell every assistant; the first that is there is
// told.
var noteFiles = []string{"AGENTS.md", "CLAUDE.md"}

const (
	maxGuidance     = 32 << 10  // bytes that are told of one file
	maxGuidanceFile = 256 << 10 // a larger one is not read
)

// guide reads what the repository says to assistants, from the worktree as it is.
// In the worktree of a pull request these files are those of the base branch; see
// codebase.Protected. A file that cannot be used is named to the person if it is
// meant for us; the turn runs without.
func (s *Service) guide(ctx context.Context, tree codebase.Tree, cwd string, p *orchestrator.Prepared) {
	root, err := os.OpenRoot(tree.Dir)
	if err != nil {
		return // there is nothing to read
	}
	defer root.Close() //nolint:errcheck // only read
	text, err := readGuidance(root, instructionsFile)
	switch {
	case err == nil:
		p.Instructions, p.InstructionsFrom = text, instructionsFile
	case !fault.Is(err, fault.NotFound):
		p.Notice = strings.TrimSpace(p.Notice + "\n\n⚠ The repository's instructions are not used: " + fault.Public(err))
	}
	dirs := []string{""}
	if cwd != "" {
		dirs = []string{cwd, ""} // the nearest counts
	}
	for _, dir := range dirs {
		for _, name := range noteFiles {
			name = path.Join(dir, name)
			text, err := readGuidance(root, name)
			if err == nil && text != "" {
				p.Notes, p.NotesFrom = text, name
				return
			}
			if err != nil && !fault.Is(err, fault.NotFound) {
				s.log.InfoContext(ctx, "a repository's notes for assistants are not used", "file", name, "err", err)
			}
		}
	}
}

// readGuidance reads a file for the system prompt, as command files are read:
// inside the root, regular, text in UTF-8. What is too long to be told is cut at
// the end of a line, and says so.
func readGuidance(root *os.Root, name string) (string, error) {
	data, err := confine.ReadFile(root, name, maxGuidanceFile)
	if err != nil {
		return "", err
	}
	text := string(data)
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", fault.Newf(fault.Invalid, "%s is not a text file in UTF-8.", name)
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	if len(text) <= maxGuidance {
		return text, nil
	}
	cut := strings.LastIndexByte(text[:maxGuidance], '\n')
	if cut < 0 {
		cut = maxGuidance
	}
	return strings.ToValidUTF8(text[:cut], "") + fmt.Sprintf("\n\n(%d more bytes of %s are not shown.)", len(text)-cut, name), nil
}
