package responses_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"remote-agent/internal/emulator"
	"remote-agent/internal/emulator/responses"
	"remote-agent/internal/waittest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is a client of the API that keeps to what its documentation says.
type client struct {
	tb  testing.TB
	url string
	web *http.Client
}

func setup(tb testing.TB, opts responses.Options) (*responses.Server, client) {
	tb.Helper()
	opts.APIKey = "key"
	s := responses.New(opts)
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	web := &http.Client{Transport: &http.Transport{}}
	tb.Cleanup(func() {
		s.Close()
		web.CloseIdleConnections()
	})
	return s, client{tb, s.URL(), web}
}

func deadline(tb testing.TB) context.Context {
	tb.Helper()
	return waittest.Context(tb.Context(), tb)
}

func (c client) send(ctx context.Context, method, path, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer key")
	return c.web.Do(req)
}

func (c client) post(body string) (status int, header http.Header, answer string) {
	c.tb.Helper()
	resp, err := c.send(deadline(c.tb), http.MethodPost, "/responses", body)
	if err != nil {
		c.tb.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		c.tb.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

type item struct {
	ID, Type, Role, Status, Name, Namespace, Arguments, Input string
	CallID                                                    string `json:"call_id"`
	Encrypted                                                 string `json:"encrypted_content"`
	Content, Summary                                          []struct{ Type, Text, Refusal string }
	Action                                                    struct{ Command []string }
}

type response struct {
	ID, Status, Model string
	Output            []item
	Error             *struct{ Code, Message string }
	Incomplete        *struct{ Reason string } `json:"incomplete_details"`
	Usage             *struct {
		Input        int `json:"input_tokens"`
		Output       int `json:"output_tokens"`
		Total        int `json:"total_tokens"`
		InputDetails struct {
			Cached int `json:"cached_tokens"`
		} `json:"input_tokens_details"`
	}
}

// streamed is what the client saw of a stream.
type streamed struct {
	kinds  []string
	deltas map[string]string // by item
	items  []item            // that were done
	last   response
	err    string
}

func (c client) stream(ctx context.Context, body string) streamed {
	c.tb.Helper()
	resp, err := c.send(ctx, http.MethodPost, "/responses", strings.Replace(body, "{", `{"stream":true,`, 1))
	if err != nil {
		c.tb.Fatal(err)
	}
	defer resp.Body.Close()
	out := streamed{deltas: map[string]string{}}
	if resp.StatusCode != http.StatusOK {
		c.tb.Fatal(resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	name := ""
	for lines.Scan() {
		if n, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = n
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type, Delta, Message string
			Sequence             int    `json:"sequence_number"`
			ItemID               string `json:"item_id"`
			Item                 item
			Response             response
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			c.tb.Fatalf("%v: %s", err, data)
		}
		if e.Type != name || e.Sequence != len(out.kinds) {
			c.tb.Errorf("event %q number %d is named %q and comes as number %d", e.Type, e.Sequence, name, len(out.kinds))
		}
		out.kinds = append(out.kinds, e.Type)
		switch {
		case strings.HasSuffix(e.Type, ".delta"):
			out.deltas[e.ItemID] += e.Delta
		case e.Type == "response.output_item.done":
			out.items = append(out.items, e.Item)
		case e.Type == "error":
			out.err = e.Message
		case e.Response.ID != "":
			out.last = e.Response
		}
	}
	if lines.Err() != nil {
		out.err = lines.Err().Error()
	}
	return out
}

func (r response) text() string {
	var text strings.Builder
	for _, i := range r.Output {
		for _, p := range i.Content {
			text.WriteString(p.Text)
		}
	}
	return text.String()
}

const hello = `{"model":"m","input":"hello"}`

func TestEcho(t *testing.T) {
	t.Parallel()
	s, c := setup(t, responses.Options{})
	got := c.stream(deadline(t), hello)
	if got.last.Status != "completed" || got.last.text() != "echo: hello [1 items]" || got.deltas[got.items[0].ID] != got.last.text() ||
		got.last.Usage.Input == 0 || got.last.Usage.Total != got.last.Usage.Input+got.last.Usage.Output {
		t.Errorf("streamed %+v", got)
	}
	const delta = "response.output_text.delta"
	want := []string{
		"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added", delta, delta, delta,
		"response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed",
	}
	if !slices.Equal(got.kinds, want) {
		t.Errorf("events %v", got.kinds)
	}
	_, _, body := c.post(hello)
	var whole response
	if err := json.Unmarshal([]byte(body), &whole); err != nil || whole.text() != got.last.text() || whole.Status != "completed" {
		t.Errorf("whole %s, %v", body, err)
	}
	if whole.Usage.InputDetails.Cached != whole.Usage.Input {
		t.Errorf("%d tokens of the same input were cached, want all %d", whole.Usage.InputDetails.Cached, whole.Usage.Input)
	}
	if err := s.Wait(deadline(t), func(st responses.Stats) bool { return st.Completed == 2 }); err != nil {
		t.Fatal(err)
	}
	r, err := s.WaitRequest(deadline(t), 1)
	if err != nil || r.LastUserText() != "hello" || r.Header.Get("Authorization") != "" {
		t.Errorf("request %+v, %v", r, err)
	}
}

// TestHistory plays a turn with calls of every kind and reasoning, and sends what
// came back again, as an agent does.
func TestHistory(t *testing.T) {
	t.Parallel()
	s, c := setup(t, responses.Options{})
	answer := responses.Reply(
		responses.Thought("let me "), responses.Thought("see"), responses.Delta("I look."),
		responses.Function(responses.Call{ID: "call_1", Name: "exec_command", Arguments: `{"cmd":"ls ä"}`, Pieces: 3, Namespace: "box"}),
		responses.Custom(responses.Call{ID: "call_2", Name: "apply_patch", Arguments: "*** Begin Patch"}),
		responses.Shell("call_3", "ls", "-l"),
	)
	const question = `{"type":"message","role":"user","content":[{"type":"input_text","text":"look"}]}`
	const options = `{"model":"m","include":["reasoning.encrypted_content"],"store":false,"input":[`
	s.Enqueue(answer, answer)
	got := c.stream(deadline(t), options+question+`]}`)
	_, _, body := c.post(options + question + `]}`)
	var whole, raw struct{ Output []json.RawMessage }
	if json.Unmarshal([]byte(body), &whole) != nil || len(whole.Output) != 5 {
		t.Fatalf("whole %s", body)
	}
	raw = whole
	i := got.items
	if len(i) != 5 || got.last.Status != "completed" || i[0].Summary[0].Text != "let me see" || i[0].Encrypted == "" || got.deltas[i[0].ID] != "let me see" ||
		i[1].Content[0].Text != "I look." || i[2].Arguments != `{"cmd":"ls ä"}` || i[2].Namespace != "box" || got.deltas[i[2].ID] != i[2].Arguments ||
		i[3].Input != "*** Begin Patch" || got.deltas[i[3].ID] != i[3].Input || !slices.Equal(i[4].Action.Command, []string{"ls", "-l"}) {
		t.Fatalf("streamed %+v", got)
	}
	items := []string{question}
	for _, r := range raw.Output {
		items = append(items, string(r))
	}
	outputs := []string{
		`{"type":"function_call_output","call_id":"call_1","output":"files"}`,
		`{"type":"custom_tool_call_output","call_id":"call_2","output":[{"type":"input_text","text":"patched"}]}`,
		`{"type":"local_shell_call_output","call_id":"call_3","output":"{}"}`,
	}
	got = c.stream(deadline(t), options+strings.Join(append(items, outputs...), ",")+`]}`)
	if got.last.text() != "echo: look [9 items]" || got.last.Usage.InputDetails.Cached == 0 {
		t.Errorf("streamed %+v", got)
	}
	last := s.Requests()[2]
	if o := last.Outputs(); len(o) != 3 || o[0].Output() != "files" || o[1].Output() != "patched" || last.Types()[1] != "reasoning" {
		t.Errorf("outputs %+v", o)
	}
	for name, change := range map[string]func(string) string{
		"summary":       func(s string) string { return strings.Replace(s, "let me see", "let me not", 1) },
		"another model": func(s string) string { return strings.Replace(s, `"model":"m"`, `"model":"n"`, 1) },
	} {
		status, _, body := c.post(change(options + strings.Join(append(items, outputs...), ",") + `]}`))
		if status != http.StatusBadRequest || !strings.Contains(body, "invalid_encrypted_content") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	s, c := setup(t, responses.Options{})
	half := responses.Text("half")
	s.Enqueue(
		half.WithStop("max_output_tokens").WithUsage(7, 9), responses.Reply(responses.Refuse("No.")),
		half.Then(responses.Failed("context_length_exceeded", "too long")), half.Then(responses.StreamError("server_error", "oops")),
		half.Then(responses.Cut()), half.Then(responses.Raw("event: news\n"), responses.KeepAlive(3), responses.Reset()),
	)
	got := c.stream(deadline(t), hello)
	if got.last.Status != "incomplete" || got.last.Incomplete.Reason != "max_output_tokens" || got.last.Usage.Total != 16 || !slices.Contains(got.kinds, "response.incomplete") {
		t.Errorf("incomplete: %+v", got)
	}
	if got = c.stream(deadline(t), hello); got.items[0].Content[0].Refusal != "No." {
		t.Errorf("refusal: %+v", got)
	}
	if got = c.stream(deadline(t), hello); got.last.Status != "failed" || got.last.Error.Code != "context_length_exceeded" {
		t.Errorf("failed: %+v", got)
	}
	if got = c.stream(deadline(t), hello); got.err != "oops" || got.last.Status != "in_progress" {
		t.Errorf("error: %+v", got)
	}
	if got = c.stream(deadline(t), hello); got.err != "" || got.last.Status != "in_progress" {
		t.Errorf("cut: %+v", got)
	}
	if got = c.stream(deadline(t), hello); got.err == "" || got.last.Status != "in_progress" {
		t.Errorf("reset: %+v", got)
	}
	s.Enqueue(half.Then(responses.Failed("server_is_overloaded", "busy")))
	if status, _, body := c.post(hello); status != http.StatusInternalServerError || !strings.Contains(body, "busy") {
		t.Errorf("in one piece: %d %s", status, body)
	}
}

func TestStall(t *testing.T) {
	t.Parallel()
	s, c := setup(t, responses.Options{})
	gate := emulator.NewGate()
	s.Enqueue(responses.Text("half").Then(responses.Gate(gate)))
	resp, err := c.send(deadline(t), http.MethodPost, "/responses", `{"model":"m","input":"x","stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	<-gate.Reached()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), `"delta":"half"`) {
	}
	_ = resp.Body.Close()
	if err := s.Wait(deadline(t), func(st responses.Stats) bool { return st.Canceled == 1 && st.Active == 0 }); err != nil {
		t.Error(err)
	}
}

func TestErrorAnswers(t *testing.T) {
	t.Parallel()
	s, c := setup(t, responses.Options{})
	for name, test := range map[string]struct {
		response responses.Response
		status   int
		want     string
	}{
		"rate limit": {responses.RateLimited(2 * time.Second), 429, "rate_limit_exceeded"},
		"quota":      {responses.QuotaExhausted(), 429, "insufficient_quota"},
		"overload":   {responses.Overloaded(), 503, "server_is_overloaded"},
		"server":     {responses.ServerError(500), 500, "server_error"},
		"key":        {responses.Unauthorized(), 401, "invalid_api_key"},
		"overflow":   {responses.ContextOverflow(), 400, "context_length_exceeded"},
		"page":       {responses.Page(502, "<html>"), 502, "<html>"},
	} {
		s.Enqueue(test.response)
		if status, _, body := c.post(hello); status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	for after, header := range map[time.Duration]string{2 * time.Second: "Retry-After=2", 250 * time.Millisecond: "Retry-After-Ms=250"} {
		s.Enqueue(responses.RateLimited(after))
		name, value, _ := strings.Cut(header, "=")
		if _, got, _ := c.post(hello); got.Get(name) != value {
			t.Errorf("%s: %v", header, got)
		}
	}
}

func TestModelsAndKeys(t *testing.T) {
	t.Parallel()
	s, c := setup(t, responses.Options{Models: []string{"m", "other"}, ContextTokens: 100, KeepRequests: 1})
	resp, err := c.send(deadline(t), http.MethodGet, "/models", "")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var list struct{ Data []struct{ ID string } }
	if json.NewDecoder(resp.Body).Decode(&list) != nil || len(list.Data) != 2 || list.Data[0].ID != "m" {
		t.Errorf("models %+v", list)
	}
	for body, want := range map[string]string{
		`{"model":"missing","input":"x"}`:                           "model_not_found",
		`{"model":"m","input":"` + strings.Repeat("x", 1000) + `"}`: "context_length_exceeded",
	} {
		if status, _, got := c.post(body); status != http.StatusBadRequest || !strings.Contains(got, want) {
			t.Errorf("%d %s, want %s", status, got, want)
		}
	}
	req, err := http.NewRequestWithContext(deadline(t), http.MethodPost, c.url+"/responses", strings.NewReader(hello))
	if err != nil {
		t.Fatal(err)
	}
	refused, err := c.web.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer refused.Body.Close()
	if refused.StatusCode != http.StatusUnauthorized || len(s.Refusals()) != 3 {
		t.Errorf("without a key: %s, %d refusals", refused.Status, len(s.Refusals()))
	}
}

func TestScript(t *testing.T) {
	t.Parallel()
	finished := make(chan responses.Outcome, 5)
	s, c := setup(t, responses.Options{OnDone: func(_ responses.Request, o responses.Outcome) { finished <- o }})
	s.Script(func(r responses.Request) responses.Response {
		return responses.Pieces(strings.Join(r.ToolNames(), ","), 3).Then(responses.Pause(time.Millisecond))
	})
	body := `{"model":"m","input":"x","tools":[{"type":"function","name":"a","parameters":{}},{"type":"web_search"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"b"}]}]}`
	if got := c.stream(deadline(t), body); got.last.text() != "a,web_search,n.b" {
		t.Errorf("%+v", got)
	}
	body = `{"model":"m","input":[{"type":"additional_tools","role":"developer","tools":[{"type":"namespace","name":"n","tools":[{"type":"custom","name":"exec"}]}]},{"role":"user","content":"x"}]}`
	if got := c.stream(deadline(t), body); got.last.text() != "n.exec" {
		t.Errorf("%+v", got)
	}
	if s.Requests()[0].WantsJSON() {
		t.Error("no schema was asked for")
	}
	s.Script(func(r responses.Request) responses.Response { return responses.Text(fmt.Sprint(r.WantsJSON())) })
	if got := c.stream(deadline(t), `{"model":"m","input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{}}}}`); got.last.text() != "true" {
		t.Errorf("%+v", got)
	}
	s.Script(nil)
	if got := c.stream(deadline(t), hello); !strings.HasPrefix(got.last.text(), "echo:") {
		t.Errorf("%+v", got)
	}
	c.post(`{}`)
	for _, want := range []responses.Outcome{responses.Completed, responses.Completed, responses.Completed, responses.Completed, responses.Refused} {
		if got := <-finished; got != want {
			t.Errorf("outcome %q, want %q", got, want)
		}
	}
}
