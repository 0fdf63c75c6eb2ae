package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/joho/godotenv"

	"remote-agent/internal/option"
	"remote-agent/internal/pattern"
)

// maxFile bounds a .env file and a secret's file: a path that points at the
// wrong thing must not fill the memory.
const maxFile = 256 << 10

var keyPattern = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// readEnvFile returns the text of a .env file. A file that does not exist is empty
// unless it is required.
func readEnvFile(path string, required bool) ([]byte, error) {
	data, err := readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !required:
		return nil, nil // an absent file is as good as an empty one
	case err != nil:
		return nil, fmt.Errorf("%s %s", path, fileTrouble(err))
	}
	return data, nil
}

// parseEnvFile returns the variables in the text of the file at path.
func parseEnvFile(path string, data []byte) (map[string]string, error) {
	data = bytes.TrimPrefix(data, bom)
	values, err := parseEnv(data)
	if err != nil {
		return nil, fmt.Errorf(`%s:%d is not NAME=value: fix it, or start the line with # (close the quotes around a value)`, path, malformedLine(data))
	}
	return values, nil
}

// parseEnv returns the variables in data. Its error may hold values and is not
// for printing.
func parseEnv(data []byte) (values map[string]string, err error) {
	// The parser is somebody else's and the file anybody's.
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("parser: %v", p)
		}
	}()
	values, err = godotenv.UnmarshalBytes(data)
	if err != nil {
		return nil, err
	}
	for name := range values {
		if !keyPattern.MatchString(name) {
			return nil, errors.New("malformed name")
		}
	}
	return values, nil
}

// maxStatement is how many lines one statement is searched over: a private key
// has some fifty.
const maxStatement = 500

// malformedLine returns the number of the line where the first statement begins
// that cannot be read, however many lines are added to it.
func malformedLine(data []byte) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	start := 0
	for end := range lines {
		if _, err := parseEnv(bytes.Join(lines[start:end+1], nil)); err == nil {
			start = end + 1
		} else if end-start > maxStatement {
			break
		}
	}
	return min(start+1, len(lines))
}

// repeated returns a warning for every variable that the text of the file sets more than
// once: the last one counts.
func repeated(file string, text []byte) (warnings []string) {
	line, seen := 1, make(map[string]bool)
	for _, s := range statementsOf(text) {
		for _, name := range s.names {
			if seen[name] {
				warnings = append(warnings, fmt.Sprintf("%s is set again in line %d of %s, which counts: remove the other line", name, line, file))
			}
			seen[name] = true
		}
		line += bytes.Count(s.text, []byte("\n"))
	}
	return warnings
}

// unknownKeys returns a warning for every variable of a place that looks like one of
// ours and is none. The environment is not ours alone: GITHUB_SHA is no mistake there.
func unknownKeys(place layer, options []option.Option) []string {
	var known, prefixes []string
	for _, o := range options {
		known = append(known, o.Name)
		if o.Secret {
			known = append(known, o.Name+option.FileSuffix)
		}
		for _, a := range o.Aliases {
			known = append(known, a.Name)
		}
		prefixes = append(prefixes, prefixOf(o.Name))
	}
	var warnings []string
	for _, key := range sortedKeys(place.values) {
		if slices.Contains(known, key) {
			continue
		}
		upper := strings.ToUpper(key)
		near, hasAll := nearest(upper, known)
		// Only prefixes that several options share are ours.
		shared := 0
		for _, p := range prefixes {
			if p != "" && p == prefixOf(upper) {
				shared++
			}
		}
		ours := shared > 1 && (hasAll || place.name != environment)
		if !ours && distance(upper, near) > min(2, len(upper)/4) {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("%s (%s) is not a known option and is ignored; did you mean %s?", key, place.name, near))
	}
	return warnings
}

func prefixOf(name string) string {
	prefix, _, ok := strings.Cut(name, "_")
	if !ok {
		return ""
	}
	return prefix
}

// nearest returns the known name that name was probably meant to be: one that
// has all its words, or else the one with the fewest different letters.
func nearest(name string, known []string) (near string, hasAll bool) {
	words := strings.Split(name, "_")
	for _, k := range known {
		parts := strings.Split(k, "_")
		if !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(parts, w) }) {
			return k, true
		}
	}
	least := math.MaxInt
	for _, k := range known {
		if max(len(k)-len(name), len(name)-len(k)) >= least {
			continue // more letters than that are missing
		}
		if d := distance(name, k); d < least {
			near, least = k, d
		}
	}
	return near, false
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// secretFile reads a secret from a file.
func (l *loader) secretFile(name, path string) (value, error) {
	data, err := readFile(path)
	if err != nil {
		return value{}, fmt.Errorf("is %q, which %s", path, fileTrouble(err))
	}
	text := strings.TrimRight(string(data), "\r\n")
	if strings.TrimSpace(text) == "" {
		return value{}, fmt.Errorf("is %q, which is empty: write the secret to it", path)
	}
	if info, err := os.Stat(path); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		l.warn("%s%s: %s can be read by other users: chmod 600 it", name, option.FileSuffix, path)
	}
	return value{text: text, origin: "file " + path}, nil
}

var (
	errTooLarge = errors.New("too large")
	errNoFile   = errors.New("not a regular file")
)

// readFile reads a regular file of at most maxFile bytes.
func readFile(path string) ([]byte, error) {
	// A named pipe would block in Open.
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNoFile
	}
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = errTooLarge
	}
	return data, err
}

// fileTrouble says what is wrong with a file and what to do.
func fileTrouble(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist: create it or correct the path"
	case errors.Is(err, fs.ErrPermission):
		return "cannot be read by this user: change its owner or permissions"
	case errors.Is(err, errNoFile):
		return "is not a file: correct the path"
	case errors.Is(err, errTooLarge):
		return fmt.Sprintf("is larger than %d KiB: correct the path", maxFile>>10)
	default:
		return "cannot be read: check the disk and the path"
	}
}
