package modelhttp

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"remote-agent/internal/messages"
)

// shouting encodes units in a way that shows where they end, and counts them.
func shouting(encoded *int) Encoder {
	return Encoder{
		Encode: func(to []byte, unit []messages.Message) ([]byte, error) {
			*encoded++
			to = append(to, '[')
			for _, m := range unit {
				to = append(append(append(to, m.Role...), ':'), m.PlainText()...)
			}
			return append(to, ']'), nil
		},
		Joins: func(before, m messages.Message) bool { return before.Role == m.Role },
	}
}

func talk(n int) []messages.Message {
	var array []messages.Message
	for i := range n {
		role := messages.RoleUser
		if i%2 == 1 {
			role = messages.RoleAssistant
		}
		array = append(array, messages.NewText(role, fmt.Sprint("text ", i)))
	}
	return array
}

func TestOnlyWhatIsNewIsEncoded(t *testing.T) {
	t.Parallel()
	encoded := 0
	var e Encodings
	array := talk(41)
	ask := func(key string, array []messages.Message, want int) {
		t.Helper()
		encoded = 0
		if _, err := e.Array(key, array, shouting(&encoded)); err != nil || encoded != want {
			t.Errorf("%d units were encoded, want %d (%v)", encoded, want, err)
		}
	}
	ask("a", array[:39], 39)
	ask("a", array[:39], 0)
	ask("a", array, 2)
	ask("b", array, 41)        // another conversation
	ask("a", array, 0)         // is still there
	ask("a", array[10:41], 31) // the window was cut
	ask("a", array[10:41], 0)
	joined := slices.Concat(array[10:41], []messages.Message{messages.NewText(messages.RoleUser, "more of the last")})
	ask("a", joined, 1)
	ask("a", array[10:41], 1)
	ask("c", array[:encodingsLeast-1], encodingsLeast-1) // too few to remember
	ask("c", array[:encodingsLeast-1], encodingsLeast-1)
}

func TestAnEncodingDependsOnItsArrayAlone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := 0
		var e Encodings
		texts := rapid.SampledFrom([]string{"a", "b"})
		var handed [][2]string // what was handed out, and what it was then
		var views [][]byte
		array := talk(20)
		for range rapid.IntRange(1, 12).Draw(t, "requests") {
			if cut := rapid.IntRange(-20, len(array)).Draw(t, "cut"); cut > 0 {
				array = append([]messages.Message(nil), array[:cut]...)
			}
			for range rapid.IntRange(0, 20).Draw(t, "more") {
				role := rapid.SampledFrom([]messages.Role{messages.RoleUser, messages.RoleAssistant}).Draw(t, "role")
				array = append(array, messages.NewText(role, texts.Draw(t, "text")))
			}
			if len(array) == 0 {
				continue
			}
			got, err := e.Array("key", array, shouting(&n))
			if err != nil {
				t.Fatal(err)
			}
			want, err := new(Encodings).Array("key", array, shouting(&n))
			if err != nil || string(got) != string(want) {
				t.Fatalf("got\n%s\nwant\n%s (%v)", got, want, err)
			}
			handed, views = append(handed, [2]string{string(got)}), append(views, got)
		}
		for i, v := range views {
			if string(v) != handed[i][0] {
				t.Fatalf("what request %d got has changed", i)
			}
		}
	})
}

func TestFilesAreNotRemembered(t *testing.T) {
	t.Parallel()
	encoded := 0
	var e Encodings
	array := talk(40)
	array[30].Blocks = []messages.Block{messages.Attachment{Name: "a.png", Data: strings.Repeat("x", 1000)}}
	if _, err := e.Array("a", array, shouting(&encoded)); err != nil {
		t.Fatal(err)
	}
	if c := e.take("a"); len(c.units) != 30 || len(c.array) != 30 || cap(c.array) >= 40 {
		t.Errorf("%d units and %d of %d messages are remembered, want 30", len(c.units), len(c.array), cap(c.array))
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	encoded := 0
	var e Encodings
	array := talk(20)
	array[0] = messages.NewText(messages.RoleUser, strings.Repeat("x", encodingsLimit/5))
	for i := range 20 {
		if _, err := e.Array(fmt.Sprint(i), array, shouting(&encoded)); err != nil {
			t.Fatal(err)
		}
	}
	if len(e.byKey) < 2 || len(e.byKey) > 5 || e.size > encodingsLimit || e.byKey["19"] == nil || e.byKey["0"] != nil {
		t.Errorf("%d conversations with %d bytes are remembered", len(e.byKey), e.size)
	}
	array[0] = messages.NewText(messages.RoleUser, strings.Repeat("x", encodingsLimit+1))
	if _, err := e.Array("large", array, shouting(&encoded)); err != nil || e.byKey["large"] != nil || e.byKey["19"] == nil {
		t.Errorf("one that is too large was remembered (%v)", err)
	}
	for k := range e.byKey {
		e.take(k)
	}
	if e.size != 0 {
		t.Errorf("%d bytes of nothing", e.size)
	}
}

// TestConversationsThatAreOverAreForgotten: short ones take little text and many messages,
// so that it is their number that counts.
func TestConversationsThatAreOverAreForgotten(t *testing.T) {
	t.Parallel()
	encoded := 0
	var e Encodings
	for i := range 3 * encodingsMost {
		if _, err := e.Array(fmt.Sprint(i), talk(20), shouting(&encoded)); err != nil {
			t.Fatal(err)
		}
	}
	if first, last := fmt.Sprint(2*encodingsMost), fmt.Sprint(3*encodingsMost-1); len(e.byKey) != encodingsMost || e.byKey[first] == nil || e.byKey[last] == nil {
		t.Errorf("%d conversations are remembered, want the last %d", len(e.byKey), encodingsMost)
	}
}

func TestManyRequestsOfOneConversation(t *testing.T) {
	t.Parallel()
	var e Encodings
	by := Encoder{Encode: func(to []byte, unit []messages.Message) ([]byte, error) {
		return append(to, unit[0].PlainText()...), nil
	}}
	array := talk(200)
	whole, err := e.Array("other", array, by)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := 20 + i; n <= 200; n += 7 {
				got, err := e.Array("a", array[:n], by)
				if err != nil || !strings.HasPrefix(string(whole), string(got)) {
					t.Errorf("%d messages: %q (%v)", n, got, err)
				}
			}
		})
	}
	all.Wait()
}

func TestSetBodySendsThePiecesAsOftenAsNeeded(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("0123456789abcdef"), 8<<10) // more than is put together
	for name, pieces := range map[string][][]byte{
		"few": {[]byte("a"), nil, []byte("bc")}, "much": {[]byte("a"), nil, long, []byte("z")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := bytes.Join(pieces, nil)
			got := make(chan []byte, 2)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				all, err := io.ReadAll(r.Body)
				if err != nil || r.ContentLength != int64(len(want)) {
					t.Errorf("the length is %d, reading it: %v", r.ContentLength, err)
				}
				got <- all
				if r.URL.Path == "/" { // the client sends the body again
					http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
				}
			}))
			defer server.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			SetBody(req, pieces...)
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			for range 2 {
				if g := <-got; !bytes.Equal(g, want) {
					t.Errorf("%d bytes came, want %d", len(g), len(want))
				}
			}
		})
	}
}
