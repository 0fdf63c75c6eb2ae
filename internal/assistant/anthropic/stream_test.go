package anthropic

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant/modelhttp"
)

// sent is an event as it was read.
type sent struct{ Name, Data string }

func readAll(r io.Reader) (all []sent, err error) {
	events := newEventReader(r)
	for {
		name, data, err := events.next()
		if err != nil {
			return all, err
		}
		all = append(all, sent{name, string(data)})
	}
}

func TestEventReader(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		stream string
		want   []sent
	}{
		"one":                       {"event: a\ndata: 1\n\n", []sent{{"a", "1"}}},
		"CRLF":                      {"event: a\r\ndata: 1\r\n\r\n", []sent{{"a", "1"}}},
		"no space":                  {"event:a\ndata:1\n\n", []sent{{"a", "1"}}},
		"two spaces":                {"event: a\ndata:  1 \n\n", []sent{{"a", " 1 "}}},
		"no name":                   {"data: 1\n\n", []sent{{"", "1"}}},
		"no data":                   {"event: a\n\n", []sent{{"a", ""}}},
		"two lines":                 {"data: 1\ndata: 2\n\n", []sent{{"", "1\n2"}}},
		"comments":                  {": hi\n\nevent: a\n: hi\ndata: 1\n:\n\n", []sent{{"a", "1"}}},
		"other fields":              {"id: 7\nretry: 1\nnonsense\ndata: 1\n\n", []sent{{"", "1"}}},
		"blank lines":               {"\n\n\ndata: 1\n\n\n\ndata: 2\n\n", []sent{{"", "1"}, {"", "2"}}},
		"cut in the data":           {"data: 1\n\ndata: 2", []sent{{"", "1"}}},
		"cut before the blank line": {"data: 1\n\ndata: 2\n", []sent{{"", "1"}}},
		"nothing":                   {"", nil},
	}
	for name, tt := range tests {
		got, err := readAll(strings.NewReader(tt.stream))
		if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, errCut) {
			t.Errorf("%s: %v, events (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestEventReaderIsBounded has events that do not end: in one line, and in many.
func TestEventReaderIsBounded(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{"one line": "data: ", "many lines": "data: " + strings.Repeat("x", 1000) + "\n"} {
		endless := io.MultiReader(strings.NewReader(line), &repeated{piece: []byte(line)})
		if name == "one line" {
			endless = io.MultiReader(strings.NewReader(line), &repeated{piece: bytes.Repeat([]byte("x"), 1000)})
		}
		if _, err := readAll(endless); !errors.Is(err, modelhttp.ErrTooLong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := readAll(io.MultiReader(strings.NewReader("data: 1"), iotest.ErrReader(io.ErrUnexpectedEOF))); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a broken connection: %v", err)
	}
}

// repeated is a stream without end.
type repeated struct{ piece []byte }

func (r *repeated) Read(p []byte) (int, error) {
	return copy(p, r.piece[:min(len(p), len(r.piece))]), nil
}

// FuzzEventReader reads any bytes, in one piece and byte by byte: the events are
// the same, none has a line break in its name, and written again they are read
// again.
func FuzzEventReader(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: 1\ndata\n\n: c\nid: 7\ndata: 2"))
	f.Add([]byte("\n:\ndata:\n\nevent\n\n"))
	f.Add([]byte("data: a\rb\r\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, err := readAll(bytes.NewReader(in))
		if !errors.Is(err, errCut) {
			t.Fatal(err)
		}
		pieces, err := readAll(iotest.OneByteReader(bytes.NewReader(in)))
		if diff := cmp.Diff(whole, pieces); diff != "" || !errors.Is(err, errCut) {
			t.Fatalf("%v, byte by byte: %s", err, diff)
		}
		var again strings.Builder
		for _, e := range whole {
			if strings.Contains(e.Name, "\n") {
				t.Fatalf("the name %q", e.Name)
			}
			again.WriteString("event: " + e.Name + "\n")
			for line := range strings.SplitSeq(e.Data, "\n") {
				again.WriteString("data: " + line + "\n")
			}
			again.WriteString("\n")
		}
		if strings.Contains(again.String(), "\r\n") {
			return // a line that ended with CR twice
		}
		got, _ := readAll(strings.NewReader(again.String()))
		if diff := cmp.Diff(whole, got); diff != "" && len(whole) > 0 {
			t.Fatalf("written and read again: %s", diff)
		}
	})
}
