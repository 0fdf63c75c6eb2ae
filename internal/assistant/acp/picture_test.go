package acp_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/assistant"
	"remote-agent/internal/emulator/acpagent"
)

// dot is a picture of one pixel.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func picture(data string) string {
	return `{"type":"image","mimeType":"image/png","data":"` + data + `"}`
}

// TestPictures: what an agent shows, and what its tools make, is for people. What it only looks
// at is not, and what is no picture is none, whatever it is called.
func TestPictures(t *testing.T) {
	t.Parallel()
	says := func(data string) acpagent.Step {
		return acpagent.Step{Update: raw(`{"sessionUpdate":"agent_message_chunk","content":` + picture(data) + `}`)}
	}
	tool := func(id, kind string) acpagent.Step {
		return acpagent.Step{Update: raw(`{"sessionUpdate":"tool_call","toolCallId":"` + id + `","title":"look","kind":"` + kind +
			`","status":"completed","rawInput":{"path":"x"},"content":[{"type":"content","content":` + picture(dot) + `}]}`)}
	}
	w := start(t, acpagent.Does(tool("1", "read"), tool("2", "other"), acpagent.Step{Say: "Here: "}, says(dot),
		says("PHN2Zz48c2NyaXB0Lz48L3N2Zz4="), says(dot+"!"), says("")))
	got := ask(t.Context(), w, question("go"))
	if got.err != nil || got.answer != "Here: [picture-2.png]"+strings.Repeat("[picture, not shown]", 3) {
		t.Errorf("the answer is %q, %v", got.answer, got.err)
	}
	var files []string
	for _, line := range kinds(got.events) {
		if strings.HasPrefix(line, "file ") {
			files = append(files, line)
		}
	}
	if d := cmp.Diff([]string{"file picture-1.png, 70 bytes", "file picture-2.png, 70 bytes"}, files); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"[picture, not shown]", "[picture-1.png]"}, got.results()); d != "" {
		t.Error(d)
	}
}

// TestPicturesAreBounded: a flood of them ends no turn, and is not passed on.
func TestPicturesAreBounded(t *testing.T) {
	t.Parallel()
	w := start(t, acpagent.Does(acpagent.Step{Times: 12, Update: raw(`{"sessionUpdate":"agent_message_chunk","content":` + picture(dot) + `}`)}))
	got := ask(t.Context(), w, question("go"))
	n := 0
	for _, e := range got.events {
		if _, is := e.(assistant.FileMade); is {
			n++
		}
	}
	if got.err != nil || n != 10 || strings.Count(got.answer, "not shown") != 2 {
		t.Errorf("%d pictures, %q, %v", n, got.answer, got.err)
	}
}
