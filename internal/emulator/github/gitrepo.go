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
}

// attached reports whether the branches are somewhere else.
func (g Git) attached() bool { return g.Dir != "" }

// AttachGit says where the branches of a repository really are. Without it they
// are the default one and those of SetBranch.
func (s *Server) AttachGit(repoName string, g Git) {
	defer s.world.writing()()
	s.world.mustRepo(repoName).git = g
}

// find returns the commit of a branch.
func (r *repo) find(branch string) (sha string, ok bool) {
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

// hunkOf returns the part of a patch that ends with a line of the new file, which
// is what a comment of the line shows, and whether the line is in the patch.
func hunkOf(patch string, line int) (string, bool) {
	var kept []string
	current := 0
	for text := range strings.SplitSeq(patch, "\n") {
		if strings.HasPrefix(text, "@@ ") {
			kept = []string{text}
			_, after, _ := strings.Cut(text, " +") // "@@ -1,2 +3,4 @@"
			digits := after[:len(after)-len(strings.TrimLeft(after, "0123456789"))]
			if start, err := strconv.Atoi(digits); err == nil {
				current = start - 1
			}
			continue
		}
		kept = append(kept, text)
		if strings.HasPrefix(text, "-") {
			continue
		}
		current++
		if current == line {
			return strings.Join(kept, "\n"), true
		}
	}
	return "", false
}
