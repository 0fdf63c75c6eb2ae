package orchestratortest

import (
	"context"
	"encoding/json"
	"sync"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
	"remote-agent/internal/orchestrator"
	"remote-agent/internal/tool"
)

// The tools of a turn. Each takes {"do": "..."} and does nothing but note it.
const (
	ReadTool    = "look" // changes nothing
	WriteTool   = "note" // writes a file
	ExecuteTool = "run"  // runs a program, for which a person is asked unless the mode is auto
)

// Tools is what the tools did, in all processes. It is safe for concurrent use.
type Tools struct {
	mu   sync.Mutex
	did  []string
	hold <-chan struct{} // nil: nobody waits

	draws [][]byte // pictures that every call returns
}

func newTools() *Tools { return &Tools{} }

// Did returns what was done so far: the tool and its argument.
func (t *Tools) Did() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.did...)
}

// Draw has every call return pictures from now on.
func (t *Tools) Draw(pictures ...[]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.draws = pictures
}

// Hold has tools that change something wait for ch, or for the end of their turn.
func (t *Tools) Hold(ch <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.hold = ch
}

// toolPort hands the tools to a process.
type toolPort struct {
	tools *Tools
	life  *life
}

var _ orchestrator.Tools = toolPort{}

// Open implements orchestrator.Tools.
func (p toolPort) Open(context.Context, orchestrator.ToolTurn) (*tool.Box, error) {
	return tool.NewBox(
		scriptedTool{ReadTool, assistant.KindRead, p},
		scriptedTool{WriteTool, assistant.KindWrite, p},
		scriptedTool{ExecuteTool, assistant.KindExecute, p},
	)
}

// Missing implements orchestrator.Tools.
func (toolPort) Missing(orchestrator.ToolTurn) []string { return nil }

type scriptedTool struct {
	name string
	kind assistant.PermissionKind
	port toolPort
}

var _ tool.Tool = scriptedTool{}

// Spec implements tool.Tool.
func (s scriptedTool) Spec() messages.ToolSpec {
	return messages.ToolSpec{Name: s.name, Description: "a scripted tool", Schema: json.RawMessage(`{"type":"object"}`)}
}

func what(args json.RawMessage) string {
	var a struct {
		Do string `json:"do"`
	}
	_ = json.Unmarshal(args, &a) //nolint:errcheck // then nothing is to be done
	return a.Do
}

// Effect implements tool.Tool.
func (s scriptedTool) Effect(_ context.Context, args json.RawMessage) (tool.Effect, error) {
	return tool.Effect{Kind: s.kind, Summary: what(args), Detail: "`" + what(args) + "`", Rule: what(args)}, nil
}

// Run implements tool.Tool.
func (s scriptedTool) Run(ctx context.Context, args json.RawMessage) (tool.Result, error) {
	s.port.life.serve()
	s.port.tools.mu.Lock()
	hold := s.port.tools.hold
	s.port.tools.mu.Unlock()
	if hold != nil && s.kind != assistant.KindRead {
		select {
		case <-hold:
		case <-ctx.Done():
			return tool.Result{}, context.Cause(ctx)
		case <-s.port.life.dead:
		}
		s.port.life.serve()
	}
	s.port.tools.mu.Lock()
	defer s.port.tools.mu.Unlock()
	s.port.tools.did = append(s.port.tools.did, s.name+" "+what(args))
	return tool.Result{Content: "done: " + what(args), Note: "ok", Shown: tool.Shown{Pictures: s.port.tools.draws}}, nil
}

// Status is what /status says of the tools.
func (toolPort) Status() []string { return []string{"scripted tools"} }
