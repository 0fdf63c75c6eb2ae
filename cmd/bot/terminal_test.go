package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/config"
	"remote-agent/internal/waittest"
)

// lockedBuffer is a buffer that several goroutines write to; written is told of
// each write.
type lockedBuffer struct {
	mu      sync.Mutex
	b       bytes.Buffer
	written chan struct{}
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() {
		select {
		case l.written <- struct{}{}:
		default:
		}
	}()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Finding 10: net/http prints bytes of an answer that nobody asked for to the
// standard logger, which wrote them to stderr as they are. It sets the standard
// logger, so it is not parallel.
func TestFinding10StandardLogIsRedacted(t *testing.T) {
	before, flags := stdlog.Writer(), stdlog.Flags()
	t.Cleanup(func() { stdlog.SetOutput(before); stdlog.SetFlags(flags) })
	stderr := &lockedBuffer{written: make(chan struct{}, 1)}
	cfg, err := app.LoadConfig(config.Source{Environ: []string{"LOG_LEVEL=debug", "OPENAI_API_KEY=hunter2hunter2"}})
	if err != nil {
		t.Fatal(err)
	}
	p := &program{process: process{stderr: stderr, stdout: io.Discard}, ctx: context.Background()}
	_, closeLog, err := p.newLogger(cfg, false)
	if err != nil {
		t.Fatal(err)
	}
	defer closeLog()

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing is served any more
	read := make(chan struct{})
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close() //nolint:errcheck // the test is over
		_, _ = conn.Read(make([]byte, 4096))
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		<-read
		fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nX-Key: hunter2hunter2\r\n\r\n\x1b[2J")
		_, _ = conn.Read(make([]byte, 1))
	}()
	client := &http.Client{Transport: &http.Transport{}}
	resp, err := client.Get("http://" + l.Addr().String()) //nolint:noctx // it is answered at once
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	close(read)
	select {
	case <-stderr.written:
	case <-waittest.Late(t):
		t.Fatal("net/http says nothing")
	}
	client.CloseIdleConnections()
	if text := stderr.String(); !strings.Contains(text, "Unsolicited response") || strings.Contains(text, "hunter2") || strings.Contains(text, "\x1b") {
		t.Errorf("stderr = %q", text)
	}
}

// Finding 10: commands that print what was said go through the writer that shows
// control characters.
func TestFinding10CareCommandsPrintNoControlBytes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &program{process: process{stdout: &out, stderr: io.Discard, environ: []string{"DATA_DIR=" + t.TempDir()}}, ctx: t.Context()}
	p.source = config.Source{Environ: p.environ}
	err := p.care(func(_ context.Context, _ config.Config, env app.Env) error {
		_, err := io.WriteString(env.Stdout, "a\x1b[2J\u202eb\n")
		return err
	})
	if err != nil || out.String() != "a␛[2J<U+202E>b\n" {
		t.Errorf("printed %q, %v", out.String(), err)
	}
}
