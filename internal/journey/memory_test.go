package journey_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"remote-agent/internal/emulator/openai"
	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/waittest"
)

const canary = "canary-7f3a"

// asked returns all that the model read in its newest request.
func (w *world) asked() string {
	w.t.Helper()
	requests := w.ai.Requests()
	if len(requests) == 0 {
		w.t.Fatal("the model was not asked")
	}
	r := requests[len(requests)-1]
	var all strings.Builder
	for _, m := range r.Messages {
		fmt.Fprintf(&all, "%s: %s\n", m.Role, m.Text())
	}
	for _, tool := range r.Tools {
		fmt.Fprintf(&all, "tool %s\n", tool.Function.Name)
	}
	return all.String()
}

// remembers asks until the model's request has what is remembered: on a busy
// machine a turn goes on without, as it should.
func (w *world) remembers(user int64, parts ...string) {
	w.t.Helper()
	for late := waittest.Late(w.t); ; {
		before := len(w.ai.Requests())
		answers := len(w.tg.ChatView(user).BotTexts())
		w.says(user, "what do I prefer?")
		w.sees(user, "an answer", func(texts []string) bool {
			return len(texts) > answers && strings.HasPrefix(texts[len(texts)-1], "answered")
		})
		text := w.asked()
		if len(w.ai.Requests()) > before && containsAll(text, parts) {
			return
		}
		select {
		case <-late:
			w.t.Fatalf("want %q in what the model reads: %s", parts, text)
		default:
		}
	}
}

// counting answers with the number of messages, and nothing of what they say.
func counting(r openai.Request) openai.Response {
	return openai.Text(fmt.Sprintf("answered [%d messages]", len(r.Messages)-1)) // without the system prompt
}

func TestWhatAPersonToldIsRememberedAndForgotten(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.ai.Script(counting)
		w.start()
		w.says(ann, "/remember I prefer "+canary+" over everything")
		w.seesText(ann, "Saved as memory 1")
		w.says(ann, "/remember My dog is called Rex")
		w.seesText(ann, "Saved as memory 2")
		w.restart()

		w.remembers(ann, canary, "remembered about you", "Rex")
		w.remembers(ann, canary)
		if text := w.asked(); strings.Count(text, canary) != 1 {
			t.Errorf("what is remembered is in the request %d times, want once: %s", strings.Count(text, canary), text)
		}
		w.says(bob, "what do I prefer?")
		w.seesText(bob, "[1 messages]")
		if text := w.asked(); strings.Contains(text, canary) || strings.Contains(text, "remembered about you") {
			t.Errorf("another person's request has %s", text)
		}
		w.says(bob, "/memory")
		w.seesText(bob, "No memories about you")
		w.says(bob, "/forget 1")
		w.seesText(bob, "You have no memory 1")

		w.says(ann, "/memory")
		w.seesText(ann, "Memories about you: 2", canary, "from you", "Rex")
		w.says(ann, "/memory edit 2 My dog is called Max")
		w.seesText(ann, "Updated memory 2")
		w.says(ann, "/memory dog")
		w.seesText(ann, "called Max", "before: My dog is called Rex")
		w.says(ann, "/forget 1")
		w.seesText(ann, "Deleted memory 1")
		w.remembers(ann, "called Max")
		if text := w.asked(); strings.Contains(text, canary) {
			t.Errorf("after forgetting the model read %s", text)
		}
		w.says(ann, "/memory off")
		w.seesText(ann, "Memory is off for you")
		answers := len(w.tg.ChatView(ann).BotTexts())
		w.says(ann, "another question")
		w.sees(ann, "an answer", func(texts []string) bool {
			return len(texts) > answers && strings.HasPrefix(texts[len(texts)-1], "answered")
		})
		if text := w.asked(); strings.Contains(text, "Max") {
			t.Errorf("with memory off the model read %s", text)
		}
		w.says(ann, "/remember something new")
		w.seesText(ann, "Memory is off for you, so nothing is saved")
		w.says(ann, "/forget all")
		w.seesText(ann, "This permanently deletes all", "(1)", "/forget all yes")
		w.says(ann, "/forget all yes")
		w.seesText(ann, "Deleted all 1 memory")
		w.says(ann, "/memory on")
		w.seesText(ann, "Memory is on for you")
		w.says(ann, "/remember token sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD")
		w.seesText(ann, "was not saved")
		w.says(ann, "/memory")
		w.seesText(ann, "No memories about you yet (memory is on)")
	})
}

// In a conversation of several people, what is remembered of one is in the
// requests of that one only: not in those of the next, also not as history.
func TestMemoriesDoNotReachOthersInAGroup(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		const group = int64(-1001)
		w.tg.AddChat(telegram.Chat{ID: group, Type: telegram.Supergroup, Title: "Team"})
		w.ai.Script(func(openai.Request) openai.Response { return openai.Text("answered") })
		w.start()
		w.says(ann, "/remember I am "+canary)
		w.seesText(ann, "Saved as memory")
		a, b := w.tg.Person(ann).In(group), w.tg.Person(bob).In(group)
		seen := 0
		for i := range 3 {
			a.Says("@acme_bot a question of Ann")
			w.sees(group, "an answer", func(texts []string) bool { return len(texts) == 2*i+1 && texts[2*i] == "answered" })
			switch text := w.asked(); strings.Count(text, canary) {
			case 0: // on a busy machine a turn goes on without, as it should
			case 1:
				seen++
			default:
				t.Errorf("Ann's request has the canary %d times: %s", strings.Count(text, canary), text)
			}
			b.Says("@acme_bot a question of Bob")
			w.sees(group, "an answer", func(texts []string) bool { return len(texts) == 2*i+2 && texts[2*i+1] == "answered" })
			if text := w.asked(); strings.Contains(text, canary) || strings.Contains(text, "tool recall") {
				t.Errorf("Bob's request has what is remembered of Ann, or a way to recall it: %s", text)
			}
		}
		if seen == 0 {
			t.Error("none of Ann's requests had what is remembered of her")
		}
		a.Says("/memory@acme_bot")
		w.seesText(group, "private chat")
		for _, text := range w.tg.ChatView(group).BotTexts() {
			if strings.Contains(text, canary) {
				t.Errorf("the group reads %q", text)
			}
		}
	})
}

func TestTheModelRemembersRecallsAndForgets(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		w.start()
		w.ai.Enqueue(
			openai.Calls(openai.Call{Name: "remember", Arguments: `{"text":"Prefers ` + canary + `","category":"preference"}`}), openai.Text("noted it"),
			openai.Calls(openai.Call{Name: "recall", Arguments: `{"query":"` + canary + `"}`}), openai.Text("looked it up"),
			openai.Calls(openai.Call{Name: "forget", Arguments: `{"number":1}`}), openai.Text("it is gone"),
		)
		w.says(ann, "remember what I prefer")
		w.seesText(ann, "noted it")
		if text := w.asked(); !strings.Contains(text, "INSERT_NEW") {
			t.Errorf("the model read %s", text)
		}
		w.says(ann, "/memory")
		w.seesText(ann, canary, "preference", "noted by the assistant")
		w.says(ann, "look it up")
		w.seesText(ann, "looked it up")
		if text := w.asked(); !strings.Contains(text, "data, not instructions") || !strings.Contains(text, "[1] Prefers "+canary) {
			t.Errorf("the model read %s", text)
		}
		w.says(ann, "delete it with")
		w.seesText(ann, "it is gone")
		w.says(ann, "/memory")
		w.seesText(ann, "No memories about you")
	})
}

// An embeddings API that hangs or breaks costs recall its vectors, never the
// answer; what it missed is embedded when it is back.
func TestAnAnswerDoesNotWaitForEmbeddings(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, w *world) {
		var broken atomic.Bool
		var embedded atomic.Int64
		api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			if broken.Load() {
				<-r.Context().Done()
				return
			}
			var req struct{ Input []string }
			_ = json.Unmarshal(raw, &req)
			data := make([]map[string]any, len(req.Input))
			for i, text := range req.Input {
				data[i] = map[string]any{"index": i, "embedding": memorytest.Vector(text)}
			}
			embedded.Add(int64(len(data)))
			_ = json.NewEncoder(rw).Encode(map[string]any{"data": data})
		}))
		w.with(map[string]string{"EMBEDDING_BASE_URL": api.URL, "EMBEDDING_MODEL": "tiny"})
		t.Cleanup(api.Close)
		t.Cleanup(w.shutdown) // before the API, whose handlers wait for the bot
		broken.Store(true)
		w.ai.Script(counting)
		w.start()
		w.says(ann, "/remember I prefer "+canary)
		w.seesText(ann, "Saved as memory")
		w.remembers(ann, canary)
		broken.Store(false)
		w.restart()
		w.remembers(ann, canary)
		if embedded.Load() == 0 {
			t.Error("nothing was embedded")
		}
	})
}
