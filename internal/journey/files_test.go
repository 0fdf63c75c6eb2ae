package journey_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/jpeg"
	"io/fs"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"remote-agent/internal/app"
	"remote-agent/internal/emulator/acpagent"
	"remote-agent/internal/emulator/anthropic"
	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/slack"
	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/emulator/transcription"
	"remote-agent/internal/platform/console"
	"remote-agent/internal/store/storetest"
)

// holiday is a JPEG as a camera makes it, with a place in its Exif.
func holiday(t *testing.T, width, height int) telegram.Attachment {
	t.Helper()
	m := image.NewYCbCr(image.Rect(0, 0, width, height), image.YCbCrSubsampleRatio420)
	for i := range m.Y {
		m.Y[i] = byte(i % width)
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, m, nil); err != nil {
		t.Fatal(err)
	}
	exif := "Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06\x00\x00GPS 52.5200 13.4050"
	head := append([]byte{0xff, 0xd8, 0xff, 0xe1}, binary.BigEndian.AppendUint16(nil, uint16(len(exif)+2))...)
	return telegram.Attachment{Kind: "photo", Name: "holiday.jpg", MIME: "image/jpeg", Data: bytes.Join([][]byte{head, []byte(exif), b.Bytes()[2:]}, nil)}
}

// isShown checks what a model got of the holiday: upright, small, without the place.
func isShown(t *testing.T, mediaType string, data []byte) {
	t.Helper()
	m, err := jpeg.Decode(bytes.NewReader(data))
	if err != nil || mediaType != "image/jpeg" {
		t.Fatalf("the model got %s: %v", mediaType, err)
	}
	if b := m.Bounds(); b.Dx() != 894 || b.Dy() != 1341 {
		t.Errorf("the model got a picture of %d x %d pixels, want it upright and scaled to 894 x 1341", b.Dx(), b.Dy())
	}
	if bytes.Contains(data, []byte("GPS")) {
		t.Error("the model got the place where the picture was taken")
	}
}

// A photo in Telegram, answered by each assistant kind.
func TestPhotoIsAnsweredByEachAssistant(t *testing.T) {
	t.Parallel()
	photo := holiday(t, 1800, 1200)
	t.Run("OpenAI", func(t *testing.T) {
		t.Parallel()
		eachDatabase(t, func(t *testing.T, w *world) {
			w.start()
			w.ai.Enqueue(openai.Text("A beach."), openai.Text("Still the beach."))
			w.tg.Person(ann).Sends(photo, "where is this?")
			w.seesText(ann, "A beach.")
			w.restart()
			w.says(ann, "are you sure?")
			w.seesText(ann, "Still the beach.")
			for i, r := range w.ai.Requests() {
				files := r.Files()
				if len(files) != 1 {
					t.Fatalf("request %d shows %d files", i, len(files))
				}
				isShown(t, files[0].MediaType, files[0].Data)
			}
		})
	})
	t.Run("Anthropic", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "").migrated()
		claude := anthropic.New(anthropic.Options{})
		if err := claude.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(claude.Close)
		w.with(map[string]string{"ANTHROPIC_API_KEY": "sk-ant-test", "ANTHROPIC_BASE_URL": claude.URL(), "DEFAULT_AI_ASSISTANT": "anthropic"}).start()
		claude.Enqueue(anthropic.Text("A beach."), anthropic.Text("Two pages."))
		w.tg.Person(ann).Sends(photo, "where is this?")
		w.seesText(ann, "A beach.")
		w.tg.Person(ann).Sends(telegram.Attachment{Name: "offer.pdf", MIME: "application/pdf", Data: []byte("%PDF-1.7\n<< /Type /Pages /Count 2 >>\n%%EOF")}, "how long is it?")
		w.seesText(ann, "Two pages.")
		requests := claude.Requests()
		for _, b := range requests[0].Messages[0].Blocks {
			if b.Type == "image" {
				isShown(t, b.Source.MediaType, b.Source.Data)
			}
		}
		var kinds []string
		for _, m := range requests[1].Messages {
			for _, b := range m.Blocks {
				kinds = append(kinds, strings.TrimSpace(b.Type+" "+b.Title))
			}
		}
		if want := "[text image text text document offer.pdf]"; fmt.Sprint(kinds) != want {
			t.Errorf("the second request has %v, want %s", kinds, want)
		}
		if refused := claude.Refusals(); len(refused) > 0 {
			t.Errorf("refused: %+v", refused)
		}
	})
	t.Run("Agent", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "").migrated()
		w.withAgent(acpagent.Script{Images: true, Turns: []acpagent.Turn{{Steps: []acpagent.Step{{Say: "I got: %FILES%."}}}}}).start()
		w.tg.Person(ann).Sends(photo, "where is this?")
		w.seesText(ann, "I got: image/jpeg ")
		w.says(ann, "and now?")
		w.seesText(ann, "I got: .")
	})
	t.Run("Agent that cannot see", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "").migrated()
		w.withAgent(acpagent.Script{Turns: []acpagent.Turn{{Steps: []acpagent.Step{{Say: "I got: %FILES%."}}}}}).start()
		w.tg.Person(ann).Sends(photo, "where is this?")
		w.seesText(ann, "The agent robot cannot look at photo.jpg")
		w.seesText(ann, "I got: .")
	})
	t.Run("Model that cannot see", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "").migrated()
		w.start()
		w.ai.Enqueue(openai.Fail(400, "invalid_request_error", "", "Invalid content type. image_url is only supported by certain models."), openai.Text("Tell me about it."))
		w.tg.Person(ann).Sends(photo, "where is this?")
		w.seesText(ann, "test-model cannot look at pictures or documents", "/model")
		w.seesText(ann, "Tell me about it.")
	})
}

func TestAlbumIsOneMessage(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.ai.Enqueue(openai.Text("The second."))
		w.tg.Person(ann).SendsAlbum("which is better?", holiday(t, 300, 200), holiday(t, 310, 200), holiday(t, 320, 200))
		w.seesText(ann, "The second.")
		requests := w.ai.Requests()
		if len(requests) != 1 || len(requests[0].Files()) != 3 {
			t.Fatalf("the model was asked %d times, the first time with %d pictures", len(requests), len(requests[0].Files()))
		}
	})
}

// TestAlbumOfAGroupAtTwoReplicas has the messages of an album arrive in turns at two
// replicas: what has no mention is for the bot because another message of it has one.
func TestAlbumOfAGroupAtTwoReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.PostgresURL(t))
	listens := []string{freePort(t), freePort(t)}
	var requests atomic.Int64
	balancer := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: listens[requests.Add(1)%2]})
	}})
	t.Cleanup(balancer.Close)
	w.with(map[string]string{
		"TELEGRAM_MODE": "webhook", "TELEGRAM_WEBHOOK_SECRET": "0123456789abcdef0123", "PUBLIC_URL": balancer.URL, "LISTEN_ADDR": listens[0],
	})
	second := w.replica()
	second.env["LISTEN_ADDR"] = listens[1]
	w.start()
	second.start()
	const group = int64(-1001)
	w.tg.AddChat(telegram.Chat{ID: group, Type: telegram.Supergroup, Title: "Team"})
	w.ai.Enqueue(openai.Text("The second."))
	a := w.tg.Person(ann).In(group)
	a.SendsAlbum("nobody asked the bot", holiday(t, 90, 60), holiday(t, 80, 60))
	a.SendsAlbum("@acme_bot which is better?", holiday(t, 300, 200), holiday(t, 310, 200), holiday(t, 320, 200), holiday(t, 330, 200))
	w.seesText(group, "The second.")
	if asked := w.ai.Requests(); len(asked) != 1 || len(asked[0].Files()) != 4 {
		t.Fatalf("the model was asked %d times, the first time with %d pictures", len(asked), len(asked[0].Files()))
	}
}

// voiceNote is OGG with Opus of some seconds.
func voiceNote(seconds int) telegram.Attachment {
	head := append([]byte("OggS\x00\x04"), binary.LittleEndian.AppendUint64(nil, uint64(seconds)*48000)...)
	return telegram.Attachment{Kind: "voice", MIME: "audio/ogg", Data: append(append(head, make([]byte, 13)...), "OpusHead and sound"...)}
}

func TestVoiceNote(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		ears := transcription.New("sk-ears")
		if err := ears.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ears.Close)
		w.start()
		w.tg.Person(ann).Sends(voiceNote(5), "")
		w.seesText(ann, "I cannot listen to voice messages here; set TRANSCRIBE_BASE_URL")

		w.shutdown()
		w.with(map[string]string{"TRANSCRIBE_BASE_URL": ears.URL(), "TRANSCRIBE_MODEL": "tiny", "TRANSCRIBE_API_KEY": "sk-ears"}).start()
		ears.Says("Which tests fail?")
		w.tg.Person(ann).Sends(voiceNote(5), "")
		w.seesText(ann, "🎤", "Which tests fail?")
		w.seesText(ann, "echo: Which tests fail?")
		if got := ears.Recordings(); len(got) != 1 || got[0].Name != "voice.ogg" || got[0].Model != "tiny" || !bytes.Equal(got[0].Data, voiceNote(5).Data) {
			t.Errorf("transcribed: %+v", got)
		}

		t.Log("two hours, and an API that is down")
		w.tg.Person(ann).Sends(voiceNote(7200), "")
		w.seesText(ann, "120 minutes long")
		for range 3 { // once or twice would be tried again
			ears.Fails(503)
		}
		w.tg.Person(ann).Sends(voiceNote(5), "")
		w.seesText(ann, "The transcription API answers with status 503")
	})
}

// What cannot be read is said, and the rest of the message is answered.
func TestBadFilesAreNamedAndTheRestIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	w.start()
	header := append([]byte("IHDR"), 0, 0, 0x27, 0x10, 0, 0, 0x27, 0x10, 8, 6, 0, 0, 0)
	huge := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), header...)
	huge = binary.BigEndian.AppendUint32(huge, crc32.ChecksumIEEE(header))
	for i, test := range []struct {
		file telegram.Attachment
		want string
	}{
		{telegram.Attachment{Name: "huge.png", MIME: "image/png", Data: huge}, "huge.png: the picture has 100 megapixels"},
		{telegram.Attachment{Name: "fake.png", MIME: "image/png", Data: []byte("hello")}, "fake.png: its content is not what its name says"},
		{telegram.Attachment{Name: "drawing.svg", MIME: "image/svg+xml", Data: []byte("<svg/>")}, "drawing.svg: files of this kind cannot be opened"},
		{telegram.Attachment{Name: "bomb.zip", MIME: "application/zip", Data: []byte("PK\x03\x04")}, "bomb.zip: files of this kind cannot be opened"},
		{telegram.Attachment{Name: "long.pdf", MIME: "application/pdf", Data: []byte("%PDF-1.7 << /Type /Pages /Count 5000 >>")}, "long.pdf: the PDF has 5000 pages"},
		{telegram.Attachment{Name: "secret.pdf", MIME: "application/pdf", Data: []byte("%PDF-1.7 trailer << /Encrypt 5 0 R >>")}, "secret.pdf: the PDF is protected with a password"},
	} {
		said := fmt.Sprintf("what about %d", i)
		w.tg.Person(ann).Sends(test.file, said)
		w.seesText(ann, test.want)
		w.seesText(ann, "echo: "+said)
	}
}

// Deleting a session deletes its pictures.
func TestPicturesGoWithTheirSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "").migrated()
	w.start()
	w.tg.Person(ann).Sends(holiday(t, 300, 200), "look")
	w.seesText(ann, "echo: look")
	kept := func() (n int) {
		_ = filepath.WalkDir(filepath.Join(w.env["DATA_DIR"], "files"), func(_ string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				n++
			}
			return nil
		})
		return n
	}
	if n := kept(); n != 1 {
		t.Fatalf("%d files are kept, want one", n)
	}
	session := strings.Trim(fmt.Sprint(w.rows("SELECT id FROM remote_agent_sessions")), "[]")
	w.shutdown()
	var transcript bytes.Buffer
	w.operator("sessions show", func(env app.Env) error {
		return app.ShowSession(t.Context(), w.config(), env, &transcript, session, app.ShowOptions{})
	})
	if !strings.Contains(transcript.String(), "Attachment photo.jpg (image/jpeg; 200 x 300 pixels; files/") {
		t.Errorf("the transcript does not show the picture: %s", transcript.String())
	}
	w.operator("sessions rm", func(env app.Env) error { return app.RemoveSession(t.Context(), w.config(), env, session, true) })
	if n := kept(); n != 0 {
		t.Errorf("%d files are left without their session", n)
	}
}

func TestPhotoInSlackOnGitHubAndInTheConsole(t *testing.T) {
	t.Parallel()
	photo := holiday(t, 1800, 1200)
	shows := func(t *testing.T, w *world) {
		t.Helper()
		for _, r := range w.ai.Requests() {
			if files := r.Files(); len(files) == 1 {
				isShown(t, files[0].MediaType, files[0].Data)
				return
			}
		}
		t.Error("the model got no picture")
	}
	t.Run("Slack", func(t *testing.T) {
		t.Parallel()
		w := newSlackWorld(t, "", "Socket").migrated()
		w.ai.Enqueue(openai.Text("A beach."))
		w.start()
		shared := w.sl.User(slackAn).In(channel).Shares("<@"+w.sl.BotUser()+"> where is this?", slack.File{Name: "holiday.jpg", MIME: "image/jpeg", Data: photo.Data})
		w.threadShows(shared.TS, "A beach.")
		shows(t, w)
	})
	t.Run("GitHub", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "").migrated()
		h := w.withGitHub(sumRepo, "webhook")
		h.start()
		w.ai.Enqueue(openai.Text("A beach."))
		issue := h.Person("gina").In(ghRepo).OpenIssue("Where is this?", "@remote-agent look: ![photo]("+h.Drop("image/jpeg", photo.Data)+")").Number
		h.sees(issue, "A beach.")
		shows(t, w)
	})
	t.Run("BelowItInAThreadOfSlack", func(t *testing.T) {
		t.Parallel()
		w := newSlackWorld(t, "", "Socket").migrated()
		w.ai.Enqueue(openai.Text("A beach."))
		w.start()
		root := w.sl.User("U7").In(channel).Shares("", slack.File{Name: "holiday.jpg", MIME: "image/jpeg", Data: photo.Data})
		w.sl.User(slackAn).In(channel).InThread(root.TS).Mentions("where is this?")
		w.threadShows(root.TS, "A beach.")
		shows(t, w)
	})
	t.Run("BelowItOnGitHub", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "").migrated()
		h := w.withGitHub(sumRepo, "webhook")
		h.start()
		w.ai.Enqueue(openai.Text("A beach."))
		issue := h.Person("reader").In(ghRepo).OpenIssue("Where is this?", "![photo]("+h.Drop("image/jpeg", photo.Data)+")").Number
		h.Person("gina").In(ghRepo).Comment(issue, "@remote-agent look")
		h.sees(issue, "A beach.")
		shows(t, w)
	})
	t.Run("ReplyInAGroupOfTelegram", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "").migrated()
		w.start()
		w.ai.Enqueue(openai.Text("A beach."))
		shared := w.tg.Person(eve).In(-100).Sends(photo, "")
		w.tg.Person(ann).In(-100).ReplyingTo(shared.MessageID).Says("@acme_bot where is this?")
		w.sees(-100, "an answer", func(texts []string) bool { return slices.Contains(texts, "A beach.") })
		shows(t, w)
	})
	t.Run("Console", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "").migrated()
		w.start()
		name := filepath.Join(t.TempDir(), "holiday.jpg")
		if err := os.WriteFile(name, photo.Data, 0o600); err != nil {
			t.Fatal(err)
		}
		w.ai.Enqueue(openai.Text("A beach."))
		daemon, err := app.Running(w.ctx(), w.config())
		if err != nil {
			t.Fatal(err)
		}
		var answer, errs bytes.Buffer
		question := console.Question{Text: "where is this? @" + name, Conversation: console.Local, Out: &answer, Errors: &errs}
		if err := question.Ask(w.ctx(), daemon); err != nil || !strings.Contains(answer.String(), "A beach.") {
			t.Errorf("%q, %q, %v", answer.String(), errs.String(), err)
		}
		shows(t, w)
	})
}
