package files_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/files"
	"remote-agent/internal/messages"
	"remote-agent/internal/sessions"
	"remote-agent/internal/store"
	"remote-agent/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// picture is a PNG of one color.
func picture(t *testing.T, width int, c color.Color) []byte {
	t.Helper()
	m := image.NewPaletted(image.Rect(0, 0, width, width), color.Palette{c})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type world struct {
	db    *store.Store
	files *files.Store
	dir   string
}

func newWorld(t *testing.T, db *store.Store) world {
	t.Helper()
	w := world{db: db, dir: filepath.Join(t.TempDir(), "[old] files")}
	w.files = files.NewStore(db, w.dir, storetest.Log(t))
	db.AfterErasing(w.files.AfterErasing)
	return w
}

// say stores a message with attachments in a session of its own and returns its id.
func (w world) say(t *testing.T, room string, list ...messages.Attachment) (session string) {
	t.Helper()
	err := w.db.InTx(t.Context(), func(tx *store.Tx) error {
		c, _, err := tx.Conversations().GetOrCreateConversation(t.Context(), messages.ConversationKey{Platform: "test", ID: room}, "demo")
		if err != nil {
			return err
		}
		s, err := tx.Sessions().CreateSession(t.Context(), sessions.NewSession{ConversationID: c.ID, Assistant: "demo"})
		if err != nil {
			return err
		}
		session = s.ID
		m := messages.NewText(messages.RoleUser, "look")
		for _, a := range list {
			m.Blocks = append(m.Blocks, a)
		}
		_, err = tx.Messages().AppendMessages(t.Context(), s.ID, "run", m)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func (w world) remove(t *testing.T, session string) {
	t.Helper()
	err := w.db.InTx(t.Context(), func(tx *store.Tx) error {
		_, err := tx.Care().RemoveSession(t.Context(), session)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w world) has(t *testing.T, hash string) bool {
	t.Helper()
	_, err := w.files.Get(t.Context(), hash)
	if err != nil && !fault.Is(err, fault.NotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// onDisk counts the files of the folder.
func (w world) onDisk(t *testing.T) (n int) {
	t.Helper()
	_ = filepath.WalkDir(w.dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return nil
	})
	return n
}

func TestAFileIsKeptOnceAndGoesWithTheLastMessage(t *testing.T) {
	storetest.EachDialect(t, func(t *testing.T, open func(t testing.TB) *store.Store) { //nolint:thelper // a test
		w := newWorld(t, open(t))
		data := []byte("some bytes")
		hash, err := w.files.Put(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := w.files.Put(t.Context(), data); err != nil || again != hash {
			t.Fatalf("again: %s, %v", again, err)
		}
		if got, err := w.files.Get(t.Context(), hash); err != nil || !bytes.Equal(got, data) {
			t.Fatalf("got %q, %v", got, err)
		}
		if want := map[bool]int{true: 0, false: 1}[w.db.KeepsBytes()]; w.onDisk(t) != want {
			t.Errorf("%d files on the disk, want %d", w.onDisk(t), want)
		}
		a := messages.Attachment{Name: `a "file":"x".png`, File: hash, Size: 10}
		first, second := w.say(t, "1", a), w.say(t, "2", a)
		w.remove(t, first)
		if !w.has(t, hash) {
			t.Error("the file went with the first of two sessions that have it")
		}
		w.remove(t, second)
		if w.has(t, hash) || w.onDisk(t) != 0 {
			t.Error("the file is still there although no message has it")
		}
		other, err := w.files.Put(t.Context(), []byte("another"))
		if err != nil {
			t.Fatal(err)
		}
		if n, err := w.files.Sweep(t.Context()); n != 0 || err != nil {
			t.Errorf("a file that was just stored is swept: %d, %v", n, err)
		}
		sent := messages.Posted{Chat: "c", ID: "m", Author: "test/42", Text: "this", Files: []messages.PostedFile{{ID: "sent", Name: "a.png", Data: []byte("another")}}}
		if err := w.db.Say(t.Context(), sent, []byte("{}")); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := w.db.OpenPosted(t.Context(), "c", "sent"); !fault.Is(err, fault.NotFound) {
				t.Errorf("what was sent in the browser is still there: %v", err)
			}
		}()
		if n, err := w.files.Expire(t.Context(), time.Now().Add(time.Minute)); n != 1 || err != nil || w.has(t, other) {
			t.Errorf("expired %d, %v", n, err)
		}
	})
}

// Between looking at a file and storing its message, another message that had it may
// be deleted.
func TestAFileIsHeldOnlyIfItIsThere(t *testing.T) {
	storetest.EachDialect(t, func(t *testing.T, open func(t testing.TB) *store.Store) { //nolint:thelper // a test
		w := newWorld(t, open(t))
		hash, err := w.files.Put(t.Context(), []byte("bytes"))
		if err != nil {
			t.Fatal(err)
		}
		hold := func() (held bool) {
			t.Helper()
			if err := w.db.InTx(t.Context(), func(tx *store.Tx) (err error) {
				held, err = tx.Files().Hold(t.Context(), hash)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return held
		}
		session := w.say(t, "1", messages.Attachment{Name: "a", File: hash})
		if !hold() {
			t.Error("a file that is there is not held")
		}
		w.remove(t, session)
		if hold() {
			t.Error("a file that is gone is held")
		}
	})
}

func TestTidyRemovesWhatHasNoRow(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t)(t))
	hash, err := w.files.Put(t.Context(), []byte("kept"))
	if err != nil {
		t.Fatal(err)
	}
	stray := filepath.Join(w.dir, "ab", strings.Repeat("ab", 32))
	spooled := filepath.Join(w.dir, "incoming", "file-1")
	for _, name := range []string{stray, spooled} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("x"), 0o600), os.Chtimes(name, time.Time{}, time.Now().Add(-2*time.Hour))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.files.Tidy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !w.has(t, hash) || w.onDisk(t) != 1 {
		t.Errorf("%d files are left, want the one that has a row", w.onDisk(t))
	}
}

// speech is a Transcriber.
type speech func(name string, audio []byte) (string, error)

func (s speech) Transcribe(_ context.Context, name string, audio io.Reader) (string, error) {
	raw, err := io.ReadAll(audio)
	if err != nil {
		return "", err
	}
	return s(name, raw)
}

// ogg is a recording of some seconds.
func ogg(seconds int) []byte {
	position := uint64(seconds) * 48000
	b := []byte("OggS\x00\x04")
	for range 8 {
		b, position = append(b, byte(position)), position>>8
	}
	return append(append(b, make([]byte, 13)...), "sound"...)
}

func TestTake(t *testing.T) {
	says := speech(func(name string, _ []byte) (string, error) { return " good morning (" + name + ") ", nil })
	w := newWorld(t, storetest.SQLite(t)(t))
	for name, test := range map[string]struct {
		in         messages.Attachment
		data       []byte
		transcribe files.Transcriber
		want       messages.Attachment // File "kept" stands for any hash
	}{
		"picture": {
			in: messages.Attachment{Name: "a.png", MediaType: "image/png"}, data: picture(t, 2000, color.White),
			want: messages.Attachment{Name: "a.png", MediaType: "image/jpeg", File: "kept", Width: 1095, Height: 1095, Note: "scaled from 2000 x 2000 pixels"},
		},
		"picture of another kind than it says": {
			in: messages.Attachment{Name: "a.jpg", MediaType: "image/jpeg"}, data: picture(t, 10, color.White),
			want: messages.Attachment{Name: "a.jpg", MediaType: "image/png", File: "kept", Width: 10, Height: 10},
		},
		"no picture": {
			in: messages.Attachment{Name: "a.png", MediaType: "image/png"}, data: []byte("hello"),
			want: messages.Attachment{Name: "a.png", MediaType: "image/png", Note: "its content is not what its name says"},
		},
		"document": {
			in: messages.Attachment{Name: "a.pdf"}, data: []byte("%PDF-1.4 << /Type /Pages /Count 2 >>"),
			want: messages.Attachment{Name: "a.pdf", MediaType: "application/pdf", File: "kept", Pages: 2},
		},
		"voice": {
			in: messages.Attachment{Name: "voice", MediaType: "audio/ogg"}, data: ogg(12), transcribe: says,
			want: messages.Attachment{Name: "voice", MediaType: "audio/ogg", Seconds: 12, Text: "good morning (voice.ogg)"},
		},
		"2 hours": {
			in: messages.Attachment{Name: "voice", MediaType: "audio/ogg"}, data: ogg(7200), transcribe: says,
			want: messages.Attachment{Name: "voice", MediaType: "audio/ogg", Note: "the recording is 120 minutes long, and 20 minutes is the limit; send it in parts"},
		},
		"nobody listens": {
			in: messages.Attachment{Name: "voice", MediaType: "audio/ogg"}, data: ogg(12),
			want: messages.Attachment{Name: "voice", MediaType: "audio/ogg", Note: files.Deaf},
		},
		"silence": {
			in: messages.Attachment{Name: "voice", MediaType: "audio/ogg"}, data: ogg(12), transcribe: speech(func(string, []byte) (string, error) { return " ", nil }),
			want: messages.Attachment{Name: "voice", MediaType: "audio/ogg", Seconds: 12, Note: "no speech was recognized in it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			intake := files.NewIntake(w.files, test.transcribe, storetest.Log(t))
			if !intake.Reads(test.in) {
				t.Error("it is not read")
			}
			got := intake.Take(t.Context(), test.in, func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(test.data)), nil })
			if got.File != "" && w.has(t, got.File) {
				got.File = "kept"
			}
			if got.Size == 0 && test.transcribe != nil {
				t.Error("its size is not known")
			}
			if got.Size = 0; got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
	if left, _ := filepath.Glob(filepath.Join(w.dir, "incoming", "*")); len(left) > 0 {
		t.Errorf("left over: %q", left)
	}
}

func TestAFileIsFetchedAgainAfterAPassingFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, storetest.SQLite(t)(t))
		data, tries := picture(t, 10, color.White), 0
		open := func(context.Context) (io.ReadCloser, error) {
			if tries++; tries == 1 {
				return io.NopCloser(io.MultiReader(bytes.NewReader(data[:20]), iotest.ErrReader(io.ErrUnexpectedEOF))), nil
			}
			return io.NopCloser(bytes.NewReader(data)), nil
		}
		got := files.NewIntake(w.files, nil, storetest.Log(t)).Take(t.Context(), messages.Attachment{Name: "a.png"}, open)
		if got.File == "" || got.Note != "" || tries != 2 {
			t.Errorf("%+v after %d tries", got, tries)
		}
		if left, _ := filepath.Glob(filepath.Join(w.dir, "incoming", "*")); len(left) > 0 {
			t.Errorf("left over: %q", left)
		}
	})
}

// A transcription API that is down for a moment costs nobody what they have said.
func TestARecordingIsHeardAgainAfterAPassingFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, storetest.SQLite(t)(t))
		for _, c := range []struct {
			failures, tries int
			text, note      string
		}{{2, 3, "hello", ""}, {3, 3, "", "it could not be read: It is down"}} {
			tries := 0
			api := speech(func(_ string, audio []byte) (string, error) {
				if tries++; !bytes.Equal(audio, ogg(12)) {
					t.Errorf("try %d has %d bytes", tries, len(audio))
				}
				if tries <= c.failures {
					return "", fault.New(fault.Unavailable, "It is down.")
				}
				return "hello", nil
			})
			got := files.NewIntake(w.files, api, storetest.Log(t)).Take(t.Context(), messages.Attachment{Name: "voice", MediaType: "audio/ogg"},
				func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(ogg(12))), nil })
			if got.Text != c.text || got.Note != c.note || got.Seconds != 12 || tries != c.tries {
				t.Errorf("%+v after %d tries", got, tries)
			}
		}
	})
}

// endless is a file that never ends.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) { e.read += len(p); return len(p), nil }

func (*endless) Close() error { return nil }

func TestAnEndlessFileIsNotReadToItsEnd(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t)(t))
	e := new(endless)
	a := files.NewIntake(w.files, nil, storetest.Log(t)).Take(t.Context(), messages.Attachment{Name: "a.png"}, func(context.Context) (io.ReadCloser, error) { return e, nil })
	if !strings.Contains(a.Note, "larger than 20 MB") || e.read > files.MaxFetched+1<<20 {
		t.Errorf("%q after %d bytes", a.Note, e.read)
	}
}

func TestShowBoundsWhatARequestHolds(t *testing.T) {
	w := newWorld(t, storetest.SQLite(t)(t))
	var array []messages.Message
	for i := range 30 {
		data := []byte(fmt.Sprint("file ", i))
		hash, err := w.files.Put(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		array = append(array, messages.Message{Role: messages.RoleUser, Blocks: []messages.Block{
			messages.Text{Text: "look"}, messages.Attachment{Name: "a", File: hash, Size: int64(len(data))},
		}})
	}
	array[29].Blocks[1] = messages.Attachment{Name: "gone", File: strings.Repeat("0", 64)}
	shown, err := w.files.Show(t.Context(), array)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range shown {
		a := m.Blocks[1].(messages.Attachment)
		switch {
		case i == 29:
			if a.Data != "" || !strings.Contains(a.Note, "no longer kept") {
				t.Errorf("the file that is gone: %+v", a)
			}
		case i >= 10:
			if want := fmt.Sprint("file ", i); a.Data != want {
				t.Errorf("file %d is %q", i, a.Data)
			}
		default:
			if a.Data != "" || a.Note == "" {
				t.Errorf("file %d is shown, too", i)
			}
		}
	}
	for _, m := range array {
		if m.Blocks[1].(messages.Attachment).Data != "" {
			t.Fatal("what was given was changed")
		}
	}
}
