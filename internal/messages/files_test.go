package messages_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/messages"
)

// shot is a picture that a tool showed.
func shot(n, size int) messages.Attachment {
	return messages.Attachment{Name: fmt.Sprint(n), File: fmt.Sprint("f", n), MediaType: "image/png", Width: 750, Height: 100, Size: int64(size)}
}

// shots is an array with a call for each picture.
func shots(n, size int) []messages.Message {
	array := []messages.Message{user("look around")}
	for i := range n {
		id := fmt.Sprint("call_", i)
		shown := result(id, "seen")
		shown.Blocks = append(shown.Blocks, shot(i, size))
		array = append(array, call(id), shown)
	}
	return array
}

// seen returns the names of files with data, and how many others say why they have none.
func seen(array []messages.Message) (names []string, noted int) {
	for _, m := range array {
		for _, b := range m.Blocks {
			a, is := b.(messages.Attachment)
			switch {
			case is && a.Data != "":
				names = append(names, a.Name)
			case is && strings.Count(a.Note, "not shown again, because of the files that came after it") == 1:
				noted++
			}
		}
	}
	return names, noted
}

func load(a messages.Attachment) (messages.Attachment, error) {
	a.Data = strings.Repeat("x", int(a.Size))
	return a, nil
}

func TestShowFilesOfTools(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ n, size, want int }{{20, 10, 20}, {25, 10, 20}, {5, 5 << 20, 2}} {
		array := shots(tt.n, tt.size)
		got, err := messages.ShowFiles(array, load)
		names, noted := seen(got)
		if err != nil || len(names) != tt.want || noted != tt.n-tt.want || names[len(names)-1] != fmt.Sprint(tt.n-1) {
			t.Errorf("%d files of %d bytes: %v with data, %d with a note (%v)", tt.n, tt.size, names, noted, err)
		}
		if diff := cmp.Diff(shots(tt.n, tt.size), array); diff != "" {
			t.Errorf("the array was changed:\n%s", diff)
		}
	}
	broken := errors.New("broken")
	if _, err := messages.ShowFiles(shots(1, 1), func(a messages.Attachment) (messages.Attachment, error) { return a, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// TestBoundFiles leaves what fits as it is, and else half of what a request holds, with one note
// each however often it is asked.
func TestBoundFiles(t *testing.T) {
	t.Parallel()
	with := func(n, size int) []messages.Message {
		array := shots(n, size)
		for _, m := range array {
			for i, b := range m.Blocks {
				if a, is := b.(messages.Attachment); is {
					m.Blocks[i], _ = load(a)
				}
			}
		}
		return array
	}
	for _, tt := range []struct{ n, size, want int }{{20, 10, 20}, {21, 10, 10}, {2, 6 << 20, 2}, {3, 5 << 20, 1}, {2, 8 << 20, 1}} {
		array := with(tt.n, tt.size)
		got := messages.BoundFiles(messages.BoundFiles(array))
		if names, noted := seen(got); len(names) != tt.want || noted != tt.n-tt.want || names[len(names)-1] != fmt.Sprint(tt.n-1) {
			t.Errorf("%d files of %d bytes: %v with data, %d with a note", tt.n, tt.size, names, noted)
		}
		if tt.n == tt.want && &got[0] != &array[0] {
			t.Errorf("%d files of %d bytes fit, and were copied", tt.n, tt.size)
		}
	}
	array := append(messages.BoundFiles(with(21, 10)), with(9, 10)...)
	if names, noted := seen(messages.BoundFiles(array)); len(names) != 19 || noted != 11 {
		t.Errorf("after it: %v, %d with a note", names, noted)
	}
}

func TestRepairKeepsFilesWithTheirResult(t *testing.T) {
	t.Parallel()
	r := func(id string) messages.Block { return messages.ToolResult{CallID: id, Content: id} }
	calls := with(call("a"), call("b"), call("c"))
	stray := messages.Message{Role: messages.RoleUser, Blocks: []messages.Block{r("c"), shot(9, 1)}}
	got := messages.Repair([]messages.Message{
		user("look"), calls, results(shot(0, 1), r("b"), shot(1, 1), shot(2, 1), r("x"), shot(3, 1)), results(r("a"), shot(4, 1), messages.Text{Text: "t"}, shot(5, 1)), stray,
	})
	want := []messages.Message{user("look"), calls, results(answered("a", "a"), shot(4, 1), answered("b", "b"), shot(1, 1), shot(2, 1), answered("c", "c")),
		{Role: messages.RoleUser, Blocks: []messages.Block{shot(9, 1)}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("repaired (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, messages.Repair(got)); diff != "" {
		t.Errorf("and again:\n%s", diff)
	}
}

// TestElideTakesTheFilesOfOldResults, which cost as much as people's, and leaves those of people.
func TestElideTakesTheFilesOfOldResults(t *testing.T) {
	t.Parallel()
	array := shots(6, 1)
	array[0].Blocks = append(array[0].Blocks, shot(100, 1))
	whole := messages.EstimateAll(array)
	plain := messages.EstimateAll(array[:1]) + 6*messages.EstimateAll([]messages.Message{call("call_0"), result("call_0", "seen")})
	if whole-plain < 6*100 {
		t.Errorf("six files of 100 tokens cost %d", whole-plain)
	}
	got := messages.Elide(array, whole-1)
	for i, m := range got {
		for _, b := range m.Blocks {
			a, is := b.(messages.Attachment)
			if is && (a.File == "") != (i == 2) || is && i == 2 && !strings.Contains(a.Note, "run the tool again") {
				t.Errorf("message %d has %+v", i, a)
			}
		}
	}
	if array[2].Blocks[1] != messages.Block(shot(0, 1)) || messages.EstimateAll(got) >= whole {
		t.Error("the array was changed, or nothing was saved")
	}
}
