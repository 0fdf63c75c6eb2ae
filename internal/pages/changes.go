package pages

import (
	"fmt"
	"strings"

	"remote-agent/internal/html"
	"remote-agent/internal/store"
)

// Changes are what a conversation has changed on its branch.
type Changes struct {
	Branch    string
	Stat      string // as "git diff --stat" prints it
	Patch     string
	Files     int
	Truncated bool     // there is more of Patch
	Unsaved   []string // files that are no part of it
}

const (
	maxPatch = 128 << 10 // bytes of HTML of a patch
	maxStat  = 16 << 10  // bytes of a summary
)

// changes shows what is different on the branch of a session's conversation, as it stands.
func (p *sessionPages) changes(r *request, row store.SessionRow) (body html.Group, err error) {
	none := html.Group{emptyText("There is nothing to compare here: the conversation has no repository, or its files were put away after a while. Choose a repository with /repo or /clone in the chat; /diff brings back files that were put away.")}
	if p.diff == nil {
		return none, nil
	}
	ctx := r.Context()
	conv, err := conversationOf(ctx, p.storage, row.ConversationID)
	if err != nil {
		return nil, err
	}
	c, ok, err := p.diff(ctx, conv)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return none, nil
	case c.Patch == "" && !c.Truncated:
		return html.Group{meta("Branch " + c.Branch), emptyText("No changes on the branch. What turns change appears here, compared with where the branch began."), p.notCompared(c)}, nil
	}
	body = html.Group{meta("Branch "+c.Branch, fmt.Sprintf("files changed: %d", c.Files), "as it stands now, whichever session made it"), p.show.output(c.Stat, maxStat)}
	size, shown, all := 0, 0, filesOf(p.show.redact(c.Patch))
	for i, f := range all {
		node := f.node(i == 0)
		if size += len(html.String(node)); size > maxPatch {
			break
		}
		body, shown = append(body, node), shown+1
	}
	switch {
	case shown < len(all):
		body = append(body, html.Styled("p", "warning", fmt.Sprintf("The patch is too large to show in full: %d of %d files are shown. /diff in the chat sends all of it as a file.", shown, c.Files)))
	case c.Truncated:
		body = append(body, html.Styled("p", "warning", "The patch is too large: only its beginning is shown. All of it is on the branch."))
	}
	return append(body, p.notCompared(c)), nil
}

// notCompared names the files that are no part of the changes.
func (p *sessionPages) notCompared(c Changes) html.Node {
	return html.If(len(c.Unsaved) > 0, html.Styled("p", "muted", fmt.Sprintf("Not compared: %s", p.show.head200(strings.Join(c.Unsaved, ", ")))))
}

// patchFile is what a patch says of one file.
type patchFile struct {
	name           string
	lines          []string
	added, removed int
}

// filesOf takes a patch apart. Lines that are content begin with a space, a sign or a
// backslash, so what begins otherwise is git's.
func filesOf(patch string) (files []patchFile) {
	inside := false // behind the heads of a file, which begin with signs, too
	for line := range strings.Lines(patch) {
		line = strings.TrimSuffix(line, "\n")
		name, begins := strings.CutPrefix(line, "diff --git ")
		if begins || len(files) == 0 {
			files, inside = append(files, patchFile{name: shortName(name)}), false
		}
		f := &files[len(files)-1]
		f.lines = append(f.lines, line)
		switch {
		case strings.HasPrefix(line, "@@"):
			inside = true
		case inside && strings.HasPrefix(line, "+"):
			f.added++
		case inside && strings.HasPrefix(line, "-"):
			f.removed++
		}
	}
	return files
}

// shortName is the name of a file that git calls "a/name b/name".
func shortName(both string) string {
	if n := (len(both) - len("a/ b/")) / 2; n > 0 && both == "a/"+both[2:2+n]+" b/"+both[2:2+n] {
		return both[2 : 2+n]
	}
	return both
}

// maxLine is how much of a line of a patch is shown, in bytes.
const maxLine = 2000

// node shows the file; what was added and removed is marked as such, and keeps its sign.
func (f patchFile) node(open bool) html.Node {
	var parts html.Group
	var block strings.Builder
	kind := ""
	flush := func() {
		if block.Len() == 0 {
			return
		}
		n := html.Node(html.Text(block.String()))
		if kind != "" {
			n = html.El(kind, n)
		}
		parts = append(parts, n)
		block.Reset()
	}
	inside := false
	for _, line := range f.lines {
		next := ""
		switch {
		case strings.HasPrefix(line, "@@"):
			inside = true
		case inside && strings.HasPrefix(line, "+"):
			next = "ins"
		case inside && strings.HasPrefix(line, "-"):
			next = "del"
		}
		if next != kind {
			flush()
			kind = next
		}
		block.WriteString(cut(line, maxLine))
		if len(line) > maxLine {
			block.WriteString(" …")
		}
		block.WriteByte('\n')
	}
	flush()
	return html.El("details", html.On("open", open),
		html.El("summary", html.Tag("code", cut(f.name, 300)), html.Textf(" +%d −%d", f.added, f.removed)),
		html.El("pre", html.Class("patch"), html.Attr("tabindex", "0"), parts))
}
