package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"remote-agent/internal/assistant"
	"remote-agent/internal/fault"
)

// contextLost is what a person reads when the agent does not know its session
// any more.
const contextLost = "The agent lost its context and was restarted with a summary of this conversation."

// replayPause is the silence that ends the replay of a session.
const replayPause = 250 * time.Millisecond

// opened is an agent with a session for a turn.
type opened struct {
	agent *agent
	fresh bool // the session knows nothing of the conversation
	kept  bool // the process worked on an earlier turn
}

// ready returns an agent that has the turn's session: the one that runs, one
// that resumes the session, or one with a new session. events are what to yield
// about it, also with an error.
func (a *Assistant) ready(ctx context.Context, p *place, turn assistant.Turn) (o opened, events []assistant.Event, err error) {
	a.mu.Lock()
	g := p.agent
	if g != nil && g.idle != nil {
		g.idle.Stop()
	}
	a.mu.Unlock()
	dir := turn.Dir
	if g != nil {
		if dir == "" && g.private {
			dir = g.dir
		}
		if g.alive() && g.session != "" && g.session == turn.Resume && g.dir == dir && g.readOnly == turn.ReadsOnly() && g.tools.serves(turn) {
			g.log = a.log.With("conversation", turn.Conversation, "run", turn.Run)
			return opened{agent: g, kept: true}, g.missed(), nil
		}
		// Its session, its directory, its rights or its tools are not the turn's. The
		// sandbox of a process is made for one directory and what may be done there, and
		// servers of tools are told of when a session is opened.
		g.end()
		select {
		case <-g.gone:
		case <-ctx.Done():
			return o, nil, canceled(ctx)
		}
	}
	if g, err = a.start(ctx, p, turn); err != nil {
		return o, nil, err
	}
	o.agent = g
	if turn.Resume == "" {
		o.fresh = true
		events, err = g.create(ctx)
		return o, events, err
	}
	events, err = g.reopen(ctx, turn.Resume)
	if err == nil {
		if recorded(turn.Array, turn.Resume).System == digest(turn.System) {
			g.system = turn.System // else they have changed since it was told
		}
		return o, events, nil
	}
	o.fresh = true
	events, err = g.afresh(ctx, err)
	return o, events, err
}

// errNoResume means that the agent offers no way to continue a session.
var errNoResume = errors.New("the agent offers neither session/resume nor session/load")

// reopen continues a stored session. What session/load replays belongs to no
// turn and is dropped. The agent may go on with it under another id, which is the event.
func (g *agent) reopen(ctx context.Context, id string) ([]assistant.Event, error) {
	var answer sessionAnswer
	err := errNoResume
	if g.canResume {
		err = g.openSession(ctx, sdk.AgentMethodSessionResume, id, &answer)
		refusal, refused := errors.AsType[*sdk.RequestError](err)
		g.canResume = !refused || refusal.Code != codeMethodNotFound // Qwen Code offers it and does not have it
	}
	if !g.canResume && g.canLoad {
		err = g.openSession(ctx, sdk.AgentMethodSessionLoad, id, &answer)
	}
	if err != nil {
		return nil, err
	}
	if !g.canResume {
		g.replayed(ctx)
	}
	g.session = id
	g.cost = meter{unknown: true}
	g.choices(answer)
	if other := answer.SessionID; other != "" && other != id && len(other) <= maxSessionID {
		g.session = other
		return []assistant.Event{assistant.Resumable{Session: other}}, nil
	}
	return nil, nil
}

// replayed waits until the replay of session/load is over: Gemini CLI's goes on behind the answer,
// and would be taken for words and calls of the turn.
func (g *agent) replayed(ctx context.Context) {
	ctx, over := context.WithTimeout(ctx, g.a.config.InitTimeout)
	defer over()
	defer g.conn.watch(replayPause, func() bool { over(); return true })()
	<-ctx.Done()
}

// afresh opens a new session because the stored one could not be continued. The
// stored id is forgotten at once if the agent does not know it; after any other
// refusal only when a new session could be opened, because the agent may be
// broken for now.
func (g *agent) afresh(ctx context.Context, why error) ([]assistant.Event, error) {
	_, answered := errors.AsType[*sdk.RequestError](why)
	if refusal, ok := errors.AsType[*sdk.RequestError](why); ok && refusal.Code == codeAuthRequired {
		return nil, g.broken(ctx, atSession, why)
	}
	if !answered && !errors.Is(why, errNoResume) {
		return nil, g.broken(ctx, atSession, why)
	}
	g.log.WarnContext(ctx, "the agent's session cannot be continued; a new one is opened", "err", g.a.scrub(why))
	var events []assistant.Event
	if forgotten(why) || errors.Is(why, errNoResume) {
		events = append(events, assistant.Resumable{})
	}
	more, err := g.create(ctx)
	if err != nil {
		return events, err
	}
	if len(events) == 0 {
		events = append(events, assistant.Resumable{})
	}
	return append(append(events, more...), assistant.Notice{Text: contextLost}), nil
}

// create opens a new session.
func (g *agent) create(ctx context.Context) ([]assistant.Event, error) {
	var answer sessionAnswer
	err := g.openSession(ctx, sdk.AgentMethodSessionNew, "", &answer)
	if err != nil {
		return nil, g.broken(ctx, atSession, err)
	}
	if answer.SessionID == "" || len(answer.SessionID) > maxSessionID {
		return nil, g.broken(ctx, atSession, errGarbage)
	}
	g.session = answer.SessionID
	g.cost = meter{}
	g.choices(answer)
	return []assistant.Event{assistant.Resumable{Session: g.session}}, nil
}

// sessionRequest is the params of session/new, and with an id of session/load and session/resume.
type sessionRequest struct {
	Meta    map[string]any `json:"_meta,omitempty"`
	Session string         `json:"sessionId,omitempty"`
	Dir     string         `json:"cwd"`
	Servers []mcpServer    `json:"mcpServers"`
}

func (g *agent) asked(id string) sessionRequest {
	request := sessionRequest{Meta: g.a.config.SessionMeta, Session: id, Dir: g.dir, Servers: []mcpServer{}}
	if g.tools != nil && g.takesHTTP {
		request.Servers = g.tools.servers(g.process.Address())
	}
	return request
}

// maxSessionID is the longest session id that is taken, in bytes.
const maxSessionID = 512

// sessionAnswer is what is used of the answers to session/new, session/load and
// session/resume. It is read leniently: an option of a new kind must not make a
// session useless.
type sessionAnswer struct {
	SessionID string `json:"sessionId"`
	Modes     *struct {
		CurrentModeID  string `json:"currentModeId"`
		AvailableModes []struct {
			ID string `json:"id"`
		} `json:"availableModes"`
	} `json:"modes"`
	Models *struct {
		CurrentModelID  string `json:"currentModelId"`
		AvailableModels []struct {
			ModelID string `json:"modelId"`
			Name    string `json:"name"`
		} `json:"availableModels"`
	} `json:"models"`
	ConfigOptions []json.RawMessage `json:"configOptions"`
}

// choices remembers what the session offers.
func (g *agent) choices(answer sessionAnswer) {
	g.modes, g.mode, g.options = nil, "", map[string]option{}
	if m := answer.Modes; m != nil {
		g.mode = m.CurrentModeID
		for _, mode := range m.AvailableModes {
			g.modes = append(g.modes, mode.ID)
		}
	}
	if m := answer.Models; m != nil {
		models := option{current: m.CurrentModelID, values: map[string]string{}}
		for _, model := range m.AvailableModels {
			models.add(model.Name, model.ModelID)
		}
		g.options["model"] = models
	}
	for _, raw := range answer.ConfigOptions {
		if category, choice, ok := decodeOption(raw); ok {
			g.options[category] = choice
		}
	}
	models := g.options["model"]
	g.model, g.own = models.current, models.current
	if len(models.ids) > 0 {
		g.a.mu.Lock()
		g.a.models = models.ids
		g.a.mu.Unlock()
	}
}

// decodeOption returns the category of a configuration option and its values,
// which may stand in groups.
func decodeOption(raw json.RawMessage) (string, option, bool) {
	type value struct {
		Value string `json:"value"`
		Name  string `json:"name"`
	}
	var w struct {
		ID           string `json:"id"`
		Category     string `json:"category"`
		Type         string `json:"type"`
		CurrentValue any    `json:"currentValue"`
		Options      []struct {
			value
			Options []value `json:"options"`
		} `json:"options"`
	}
	if json.Unmarshal(raw, &w) != nil || w.Type != "select" || w.Category == "" {
		return "", option{}, false
	}
	current, _ := w.CurrentValue.(string)
	choice := option{id: w.ID, current: current, values: map[string]string{}}
	for _, v := range w.Options {
		for _, one := range append(v.Options, v.value) {
			choice.add(one.Name, one.Value)
		}
	}
	return w.Category, choice, true
}

// configure sets what the turn asks for: the session mode and the model.
func (g *agent) configure(ctx context.Context, turn assistant.Turn) ([]assistant.Event, error) {
	if g.a.config.ModeFor != nil {
		if err := g.setMode(ctx, g.a.config.ModeFor(turn)); err != nil {
			return nil, err
		}
	}
	events, err := g.setModel(ctx, turn.Model)
	if g.tools != nil && !g.takesHTTP {
		events = append(events, assistant.Notice{Once: true, Text: "The agent takes no MCP servers over HTTP, so it does not have those of the profile."})
	}
	return events, err
}

// setMode puts the session into the first of the modes that it offers.
func (g *agent) setMode(ctx context.Context, modes []string) error {
	if len(modes) == 0 {
		return nil
	}
	o := g.options["mode"]
	i := slices.IndexFunc(modes, func(m string) bool { return slices.Contains(g.modes, m) || o.values[strings.ToLower(m)] != "" })
	if i < 0 {
		if !g.a.config.AnyMode {
			g.log.WarnContext(ctx, "the agent does not offer the mode", "mode", modes[0])
		}
		return nil
	}
	mode := modes[i]
	if mode == g.mode {
		return nil
	}
	var err error
	if slices.Contains(g.modes, mode) {
		err = g.conn.call(ctx, g.a.config.InitTimeout, sdk.AgentMethodSessionSetMode,
			map[string]string{"sessionId": g.session, "modeId": mode}, nil)
	} else {
		err = g.setOption(ctx, o.id, o.values[strings.ToLower(mode)])
	}
	if err != nil {
		// The mode may be a limit, so the turn does not go on without it.
		err = g.broken(ctx, atSession, err)
		if fault.Is(err, fault.Canceled) {
			return err
		}
		return &fault.Error{
			Kind: fault.KindOf(err), Err: err,
			Public: "The agent rejected the mode that this turn needs, so it was not started.",
		}
	}
	g.mode = mode
	return nil
}

// setModel has the session ask a model; without one, that which it had before another one
// was chosen.
func (g *agent) setModel(ctx context.Context, model string) ([]assistant.Event, error) {
	o := g.options["model"]
	id, offered := o.values[strings.ToLower(cmp.Or(model, g.own))]
	var err error
	switch {
	case !offered && model == "", offered && id == g.model:
		return nil, nil
	case offered && o.id != "":
		err = g.setOption(ctx, o.id, id)
	case offered:
		err = g.conn.call(ctx, g.a.config.InitTimeout, sdk.AgentMethodSessionSetModel,
			map[string]string{"sessionId": g.session, "modelId": id}, nil)
	}
	_, refused := errors.AsType[*sdk.RequestError](err)
	switch {
	case refused && model == "":
		return nil, nil
	case !offered || refused:
		_, err := g.setModel(ctx, "") // it may have another one from an earlier turn
		return []assistant.Event{assistant.Notice{Text: "The agent cannot use the model " + oneLine(model, 60) + "; it uses its own.", Once: true}}, err
	case err != nil:
		return nil, g.broken(ctx, atSession, err)
	}
	g.model = id
	return nil, nil
}

func (g *agent) setOption(ctx context.Context, id, value string) error {
	return g.conn.call(ctx, g.a.config.InitTimeout, sdk.AgentMethodSessionSetConfigOption, map[string]string{
		"sessionId": g.session, "configId": id, "value": value,
	}, nil)
}

// cancelTurn asks the agent to end its turn, and waits for it.
func (g *agent) cancelTurn(ctx context.Context, prompt <-chan answered) (answered, error) {
	select {
	case x := <-prompt: // over already
		return x, x.err
	default:
	}
	if err := g.conn.notify(ctx, sdk.AgentMethodSessionCancel, map[string]string{"sessionId": g.session}); err != nil {
		return answered{}, err
	}
	select {
	case x := <-prompt:
		return x, x.err
	case <-ctx.Done():
		return answered{}, ctx.Err()
	}
}
