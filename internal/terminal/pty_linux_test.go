package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"remote-agent/internal/waittest"
)

// openPTY returns the two ends of a terminal of 60 columns: what a person has, and what
// a program has.
func openPTY(tb testing.TB) (person, program *os.File) {
	tb.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		tb.Skipf("there are no terminals here: %v", err)
	}
	tb.Cleanup(func() { _ = person.Close() })
	fd := int(person.Fd()) //nolint:gosec // a descriptor fits
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		tb.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		tb.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: 60, Row: 24}); err != nil {
		tb.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = program.Close() })
	return person, program
}

// atPTY runs a terminal on a real one. It returns what a person types at, what is seen
// of it, and what ends it.
func atPTY(tb testing.TB, h Handler) (p *Terminal, person *os.File, seen chan []byte, stop func()) {
	tb.Helper()
	person, program := openPTY(tb)
	c := Of(program, program, func(string) (string, bool) { return "", false })
	c.Prompt = "you> "
	p = New(c)
	seen = make(chan []byte, 1<<16)
	go func() {
		defer close(seen)
		for {
			buffer := make([]byte, 1<<16)
			n, err := person.Read(buffer)
			if err != nil {
				return
			}
			seen <- buffer[:n]
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, h) }()
	return p, person, seen, func() {
		tb.Helper()
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
		_, _ = person.WriteString("\n") // frees the goroutine that reads: the terminal passes on whole lines again
		_ = program.Close()
		for range seen { //nolint:revive // until the reader has ended
		}
	}
}

// await reads what is seen until it has a text.
func await(tb testing.TB, seen chan []byte, text string) (all string) {
	tb.Helper()
	late := waittest.Late(tb)
	for {
		select {
		case b, ok := <-seen:
			if all += string(b); strings.Contains(all, text) {
				return all
			}
			if !ok {
				tb.Fatalf("%q ends without %q", all, text)
			}
		case <-late:
			tb.Fatalf("%q does not appear in %q", text, all)
		}
	}
}

// On a real terminal, which by itself passes on 4,095 bytes of a line and makes line
// feeds of what Enter sends.
func TestARealTerminal(t *testing.T) {
	t.Parallel()
	submitted := make(chan string, 10)
	p, person, seen, stop := atPTY(t, Handler{
		Submit:    func(_ context.Context, in Input) { submitted <- in.Text },
		Interrupt: func(context.Context, bool) bool { submitted <- "^C"; return true },
	})
	await(t, seen, "you> ")
	long := strings.Repeat("0123456789", 600) + "end"
	for _, tc := range [][2]string{
		{long + "\r", long},
		{pasteOn + "1\n2\n3\n4\n5" + pasteOff + "\r", "1\n2\n3\n4\n5"},
		{"ac\x1b[Db\r", "abc"},
		{"one\x1b\rtwo\r", "one\ntwo"},
		{"\x03", "^C"},
	} {
		for rest := tc[0]; rest != ""; {
			n, err := person.WriteString(rest[:min(len(rest), 512)])
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		select {
		case got := <-submitted:
			if got != tc[1] {
				t.Errorf("%.20q: submitted %q (%d bytes)", tc[0], got, len(got))
			}
		case <-waittest.Late(t):
			t.Fatalf("%.20q: nothing is submitted", tc[0])
		}
	}
	if err := p.Show("1", "**Hello** from\n\n- a list", true); err != nil {
		t.Fatal(err)
	}
	if all := await(t, seen, "a list\r\n"); !strings.Contains(all, "\x1b[1mHello\x1b[0m from\r\n\r\n• a list\r\n") {
		t.Errorf("shown %q", all)
	}
	stop()
}

// BenchmarkEcho measures how long a key takes to appear while an answer streams, which
// is taller than the screen.
func BenchmarkEcho(b *testing.B) {
	p, person, seen, stop := atPTY(b, Handler{})
	await(b, seen, "you> ")
	streaming, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(5 * time.Millisecond) // ten times as often as the console is told
		defer tick.Stop()
		text := ""
		for i := 0; ; i++ {
			select {
			case <-streaming:
				return
			case <-tick.C:
			}
			if text += fmt.Sprintf("- item **%d** of `many`\n", i); len(text) > 8<<10 {
				text = ""
			}
			_ = p.Show(fmt.Sprint(i/300), text, false)
		}
	}()
	var took []time.Duration
	for i := range b.N {
		key := string(rune('A' + i%26))
		start := time.Now()
		if _, err := person.WriteString("\x15" + key); err != nil {
			b.Fatal(err)
		}
		for at := <-seen; !bytes.Contains(at, []byte("you> "+key)); at = <-seen {
		}
		took = append(took, time.Since(start))
	}
	close(streaming)
	<-over
	stop()
	slices.Sort(took)
	for name, at := range map[string]int{"p50": len(took) / 2, "p99": len(took) * 99 / 100, "max": len(took) - 1} {
		b.ReportMetric(float64(took[at].Microseconds()), "µs-"+name)
	}
}

func echoes(program *os.File) bool {
	state, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS) //nolint:gosec // a descriptor fits
	return err == nil && state.Lflag&unix.ECHO != 0
}

// A secret is read like any line, and shown to nobody: Ctrl-D ends the questions, Ctrl-C the
// program.
func TestASecretAtATerminal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typed, want string
		err         error
	}{
		"a line":             {"key\r", "key", nil},
		"corrected":          {"wrong\x15kez\x7fy\r", "key", nil},
		"pasted with an é":   {"\x1b[200~clé\x1b[201~\r", "clé", nil},
		"nothing":            {"\r", "", nil},
		"Ctrl-D":             {"\x04", "", io.EOF},
		"Ctrl-D in a line":   {"key\x04\r", "key", nil},
		"Ctrl-C":             {"key\x03", "", context.Canceled},
		"an arrow before it": {"\x1b[Akey\n", "key", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			person, program := openPTY(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			asker := NewAsker(program, program)
			asker.Interrupt = cancel
			seen := make(chan string)
			go func() {
				var all bytes.Buffer
				buffer := make([]byte, 1024)
				for {
					n, err := person.Read(buffer)
					all.Write(buffer[:n])
					if err != nil || strings.HasSuffix(all.String(), "\n") {
						seen <- all.String()
						return
					}
					if strings.HasSuffix(all.String(), "Key: ") {
						for echoes(program) { //nolint:revive // the question is there a moment before
						}
						_, _ = person.WriteString(c.typed)
					}
				}
			}()
			got, err := asker.Secret(ctx, "Key: ")
			if got != c.want || !errors.Is(err, c.err) {
				t.Errorf("got %q, %v; want %q, %v", got, err, c.want, c.err)
			}
			if shown := <-seen; shown != "Key: \r\n" {
				t.Errorf("the screen shows %q", shown)
			}
			_, _ = person.WriteString("\n") // frees the goroutine that reads
		})
	}
}
