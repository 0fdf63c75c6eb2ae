package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

// The variables that tell Relay where to work, beside those that the bot has for
// the same.
const (
	envTelegramURL   = "TELEGRAM_API_URL"
	envTelegramToken = "TELEGRAM_BOT_TOKEN" //nolint:gosec // the name of a variable
	envModelURL      = "OPENAI_BASE_URL"
	envModelKey      = "OPENAI_API_KEY"
	envJournal       = "BENCH_JOURNAL"
)

// Relay is the least that answers people: it polls Telegram, asks the model and
// sends what the model said, every message by itself. It is the floor that the
// program is measured against. With BENCH_JOURNAL it is the durable floor: each
// message is on disk in that file before the model is asked, and each reply
// before it is sent. It knows no sessions, limits, rights, retries or repeats,
// and the first error is its end. It takes addresses and keys from the variables
// that the bot takes them from, and returns nil when ctx is done.
func Relay(ctx context.Context, lookup func(name string) (string, bool)) error {
	value := func(name string) string { v, _ := lookup(name); return v }
	r := &relay{
		telegram: value(envTelegramURL) + "/bot" + value(envTelegramToken) + "/",
		model:    value(envModelURL) + "/chat/completions", key: value(envModelKey),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
	}
	defer r.client.CloseIdleConnections()
	if path := value(envJournal); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600) //nolint:gosec // the bench names it
		if err != nil {
			return fmt.Errorf("bench: open the relay's journal: %w", err)
		}
		defer f.Close() //nolint:errcheck // every write was flushed
		r.journal = f
	}
	if err := r.poll(ctx); ctx.Err() == nil {
		return err
	}
	return nil
}

type relay struct {
	telegram, model, key string
	client               *http.Client

	mu      sync.Mutex // orders the writes of journal
	journal *os.File   // nil: nothing is kept
}

type relayUpdate struct {
	ID      int64 `json:"update_id"`
	Message struct {
		Text string `json:"text"`
		Chat struct {
			ID int64 `json:"id"`
		} `json:"chat"`
	} `json:"message"`
}

// poll answers everybody until something fails.
func (r *relay) poll(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	var answering sync.WaitGroup
	defer answering.Wait()
	defer fail(nil)
	for offset := int64(0); ; {
		var got struct{ Result []relayUpdate }
		ask := map[string]any{"offset": offset, "timeout": 30, "allowed_updates": []string{"message"}}
		if err := r.call(ctx, r.telegram+"getUpdates", ask, &got); err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		for _, u := range got.Result {
			offset = u.ID + 1
			answering.Go(func() {
				if err := r.answer(ctx, u); err != nil {
					fail(err)
				}
			})
		}
	}
}

func (r *relay) answer(ctx context.Context, u relayUpdate) error {
	if err := r.keep(u.Message.Chat.ID, u.Message.Text); err != nil {
		return err
	}
	var got struct {
		Choices []struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		} `json:"choices"`
	}
	ask := map[string]any{"model": "emulated", "messages": []map[string]string{{"role": "user", "content": u.Message.Text}}}
	if err := r.call(ctx, r.model, ask, &got); err != nil {
		return err
	}
	if len(got.Choices) == 0 {
		return errors.New("bench: the model sent no answer")
	}
	reply := got.Choices[0].Message.Content
	if err := r.keep(u.Message.Chat.ID, reply); err != nil {
		return err
	}
	return r.call(ctx, r.telegram+"sendMessage", map[string]any{"chat_id": u.Message.Chat.ID, "text": reply}, &struct{}{})
}

// keep returns when the text is on disk, if there is a journal.
func (r *relay) keep(chat int64, text string) error {
	if r.journal == nil {
		return nil
	}
	line, err := json.Marshal(map[string]any{"chat": chat, "text": text})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.journal.Write(append(line, '\n')); err != nil {
		return err
	}
	return r.journal.Sync()
}

// call posts a JSON object and reads the one that comes back.
func (r *relay) call(ctx context.Context, url string, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if url == r.model {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("bench: the relay's call was answered with %s", resp.Status)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, into)
}
