package redact_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"remote-agent/internal/redact"
)

// ordinary returns the documents and sources of the repository, as text without
// credentials.
func ordinary(tb testing.TB) string {
	tb.Helper()
	var b strings.Builder
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/*.yaml", "../*/*.go", "../*/*/*.go", "../../go.sum", "../../go.mod"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			tb.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue // they hold made-up secrets on purpose
			}
			text, err := os.ReadFile(f)
			if err != nil {
				tb.Fatal(err)
			}
			b.Write(text)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func BenchmarkString(b *testing.B) {
	r := redact.New("configured-secret", "another-secret-value")
	text := ordinary(b)
	for name, s := range map[string]string{
		"line": `turn finished conversation=telegram/42 session_id=0191 duration_ms=1234 tokens=55`,
		"text": text[:min(len(text), 1<<20)],
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				r.String(s)
			}
		})
	}
}
