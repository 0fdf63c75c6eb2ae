package slack_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/platform"
	"remote-agent/internal/platform/slack"
)

// thread is Slack with one thread: its root and a message every minute.
type thread struct{ replies int }

const threadRoot = 1_700_000_000

func (th thread) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	answer := `{"ok":true,"team_id":"T1","user_id":"UBOT","bot_id":"BBOT","user":"agent"}`
	if strings.HasSuffix(r.URL.Path, "conversations.replies") {
		answer = th.page(form)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, err
}

// page answers oldest first, the root before all but what a cursor names.
func (th thread) page(form url.Values) string {
	limit, _ := strconv.Atoi(form.Get("limit"))
	oldest, _ := strconv.ParseFloat(form.Get("oldest"), 64)
	first, list := 1, []string{fmt.Sprintf(`{"ts":"%d.000100","username":"Ann","text":"root"}`, threadRoot)}
	if cursor := form.Get("cursor"); cursor != "" {
		first, _ = strconv.Atoi(cursor)
		list = nil
	}
	for ; first <= th.replies && len(list) < limit; first++ {
		if at := threadRoot + 60*first; float64(at) > oldest {
			list = append(list, fmt.Sprintf(`{"ts":"%d.000100","username":"Ann","text":"%d"}`, at, first))
		}
	}
	next := ""
	if first <= th.replies {
		next = strconv.Itoa(first)
	}
	return fmt.Sprintf(`{"ok":true,"messages":[%s],"response_metadata":{"next_cursor":%q}}`, strings.Join(list, ","), next)
}

// Slack shows a thread from its beginning. Of one that is too long to be read whole the bot
// gets what stands nearest before the mention, not the middle.
func TestContextOfALongThread(t *testing.T) {
	t.Parallel()
	for _, replies := range []int{30, 1900, 2100, 9000, 20_000} {
		t.Run(strconv.Itoa(replies), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a, err := slack.New(slack.Config{
					BotToken: botToken, SigningSecret: secret, Transport: thread{replies}, Surroundings: platform.Surroundings{Log: testLog(t)},
				})
				if err != nil {
					t.Fatal(err)
				}
				begun := time.Now()
				quotes, err := a.Context(t.Context(), messages.Inbound{
					Conversation: messages.ConversationKey{Platform: slack.Name, ID: fmt.Sprintf("T1/C1/%d.000100", threadRoot)},
					Message:      messages.MessageID(fmt.Sprintf("%d.000200", threadRoot+60*replies)),
				})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begun); took > 15*time.Second {
					t.Errorf("it took %s", took)
				}
				if len(quotes) != min(replies, 50)+1 || quotes[0].Text != "root" {
					t.Errorf("%d quotes: %+v", len(quotes), quotes)
				}
				for i, q := range quotes[1:] {
					n, _ := strconv.Atoi(q.Text)
					if before, _ := strconv.Atoi(quotes[i].Text); n <= before {
						t.Errorf("%s stands behind %s", q.Text, quotes[i].Text)
					}
				}
				if last := quotes[len(quotes)-1].Text; last != strconv.Itoa(replies) {
					t.Errorf("the last of %d messages that are read is %s", replies, last)
				}
			})
		})
	}
}
