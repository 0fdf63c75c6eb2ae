package github

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Git says what there is of a repository outside of the emulator.
type Git struct {
	// CloneURL is shown as the repository's clone_url.
	CloneURL string

	// Dir is a bare repository on disk. Branches, files and diffs are read from
	// it with the git program, and refs/pull/<number>/head is written to it.
	Dir string

	// Ref tells whether a branch exists and its commit; it goes before Dir. It
	// is called with the server's lock held, so it may not call the server.
	Ref func(repo, branch string) (sha string, ok bool)
}

// attached reports whether the branches are somewhere else.
func (g Git) attached() bool { return g.Ref != nil || g.Dir != "" }

// AttachGit says where the branches of a repository really are. Without it they
// are those of Repo.Branches and SetBranch.
func (s *Server) AttachGit(repoName string, g Git) {
	defer s.world.writing()()
	s.world.mustRepo(repoName).git = g
}

// find returns the commit of a branch.
func (r *repo) find(branch string) (sha string, ok bool) {
	if r.git.Ref != nil {
		return r.git.Ref(r.fullName(), branch)
	}
	if r.git.Dir != "" {
		out, err := runGit(r.git.Dir, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+branch+"^{commit}")
		return out, err == nil
	}
	sha, ok = r.branches[branch]
	return sha, ok
}

func runGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...) //nolint:gosec,noctx // a program for tests, on repositories of tests; it takes milliseconds
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "GIT_DIR=" + dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "LC_ALL=C"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, stderr.String())
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// publish makes the head of a pull request fetchable, as GitHub does.
func (i *issue) publish() {
	head, base := i.pull.head, i.pull.base
	if head.repo == nil || head.repo.git.Dir == "" || base.repo.git.Dir == "" {
		return
	}
	ref := "refs/pull/" + itoa(i.number) + "/head"
	// A branch that is gone leaves the ref where it was.
	_, _ = runGit(base.repo.git.Dir, "fetch", "--quiet", "--no-write-fetch-head", "--", head.repo.git.Dir, "+refs/heads/"+head.ref+":"+ref)
}

// File is a file that a pull request changes.
type File struct {
	Path      string
	Status    string // added, modified, removed, renamed; default modified
	Previous  string // the old path, if it was renamed
	Additions int
	Deletions int
	Patch     string // its hunks; empty for what is not text, or too large
}

// diff returns the diff of a pull request as git writes it.
func (i *issue) diff() string {
	p := i.pull
	if p.diff != "" {
		return p.diff
	}
	if len(p.files) > 0 {
		var b strings.Builder
		for _, f := range p.files {
			fmt.Fprintf(&b, "diff --git a/%s b/%s\n--- a/%s\n+++ b/%s\n%s\n", f.Path, f.Path, f.Path, f.Path, strings.TrimSuffix(f.Patch, "\n"))
		}
		return b.String()
	}
	out, err := i.gitDiff("--patch", "--no-color", "--no-ext-diff", "-M")
	if err != nil {
		return ""
	}
	return out + "\n"
}

// gitDiff compares the head with where it left the base.
func (i *issue) gitDiff(options ...string) (string, error) {
	p := i.pull
	p.refresh()
	i.publish()
	if p.base.repo.git.Dir == "" {
		return "", os.ErrNotExist
	}
	args := append(append([]string{"diff"}, options...), p.base.sha+"..."+p.head.sha, "--")
	return runGit(p.base.repo.git.Dir, args...)
}

// files returns the files that a pull request changes.
func (i *issue) files() []File {
	if len(i.pull.files) > 0 || i.pull.base.repo.git.Dir == "" {
		return i.pull.files
	}
	names, err := i.gitDiff("--name-status", "-z", "-M")
	if err != nil {
		return nil
	}
	numbers, err := i.gitDiff("--numstat", "-z", "-M")
	if err != nil {
		return nil
	}
	files := parseNames(names)
	counts := parseNumbers(numbers)
	patches := splitDiff(i.diff())
	for n := range files {
		c := counts[files[n].Path]
		files[n].Additions, files[n].Deletions = c[0], c[1]
		if n < len(patches) {
			files[n].Patch = patches[n]
		}
	}
	return files
}

// parseNames reads what git diff --name-status -z prints.
func parseNames(out string) []File {
	words := map[byte]string{'A': "added", 'D': "removed", 'M': "modified", 'R': "renamed", 'T': "changed"}
	var files []File
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for len(fields) > 1 {
		kind := fields[0]
		f := File{Status: words[kind[0]], Path: fields[1]}
		fields = fields[2:]
		if kind[0] == 'R' && len(fields) > 0 {
			f.Previous, f.Path, fields = f.Path, fields[0], fields[1:]
		}
		files = append(files, f)
	}
	return files
}

// parseNumbers reads what git diff --numstat -z prints: additions and deletions
// by path.
func parseNumbers(out string) map[string][2]int {
	counts := map[string][2]int{}
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for len(fields) > 0 {
		parts := strings.SplitN(fields[0], "\t", 3)
		fields = fields[1:]
		if len(parts) != 3 {
			continue
		}
		added, _ := strconv.Atoi(parts[0]) // "-" for what is not text
		removed, _ := strconv.Atoi(parts[1])
		name := parts[2]
		if name == "" && len(fields) > 1 { // renamed: old and new follow
			name, fields = fields[1], fields[2:]
		}
		counts[name] = [2]int{added, removed}
	}
	return counts
}

// splitDiff returns the hunks of each file of a diff, without the lines before
// the first.
func splitDiff(diff string) []string {
	var patches []string
	hunks := false
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			patches, hunks = append(patches, ""), false
		case len(patches) == 0:
		case hunks || strings.HasPrefix(line, "@@ "):
			hunks = true
			patches[len(patches)-1] += line
		}
	}
	for n := range patches {
		patches[n] = strings.TrimSuffix(patches[n], "\n")
	}
	return patches
}

// hunkOf returns the part of a patch that ends with a line of a side, which is
// what a comment of the line shows, and whether the line is in the patch.
func hunkOf(patch string, line int, left bool) (string, bool) {
	var kept []string
	old, current := 0, 0
	for text := range strings.SplitSeq(patch, "\n") {
		if strings.HasPrefix(text, "@@ ") {
			var oldCount, newCount int
			kept = []string{text}
			if parseHunk(text, &old, &oldCount, &current, &newCount) {
				old, current = old-1, current-1
			}
			continue
		}
		kept = append(kept, text)
		added, removed := strings.HasPrefix(text, "+"), strings.HasPrefix(text, "-")
		if !added {
			old++
		}
		if !removed {
			current++
		}
		if left && !added && old == line || !left && !removed && current == line {
			return strings.Join(kept, "\n"), true
		}
	}
	return "", false
}

// parseHunk reads "@@ -1,2 +3,4 @@", in which a count of one may be missing.
func parseHunk(header string, numbers ...*int) bool {
	fields := strings.Fields(header)
	if len(fields) < 3 {
		return false
	}
	for n, field := range fields[1:3] {
		start, count, given := strings.Cut(field[1:], ",")
		if !given {
			count = "1"
		}
		var err1, err2 error
		*numbers[2*n], err1 = strconv.Atoi(start)
		*numbers[2*n+1], err2 = strconv.Atoi(count)
		if err1 != nil || err2 != nil {
			return false
		}
	}
	return true
}
