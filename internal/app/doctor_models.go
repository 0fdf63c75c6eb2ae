package app

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"maps"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/assistant/acp"
	"remote-agent/internal/config"
	"remote-agent/internal/doctor"
	"remote-agent/internal/fault"
	"remote-agent/internal/messages"
	"remote-agent/internal/spend"
)

// modelChecks ask each model API once.
func (e *examination) modelChecks() []doctor.Check {
	models, err := buildModels(e.config, e.log)
	if err != nil {
		return []doctor.Check{{Area: "models", Run: func(context.Context) []doctor.Finding { return one(doctor.Failed("options", err, "bot config show")) }}}
	}
	var checks []doctor.Check
	for _, name := range slices.Sorted(maps.Keys(models)) {
		m := models[name]
		checks = append(checks, doctor.Check{Area: "models", Online: true, Run: func(ctx context.Context) []doctor.Finding { return e.examineModel(ctx, m) }})
	}
	checks = append(checks, doctor.Check{Area: "models", Run: func(context.Context) []doctor.Finding { return e.examineDefault(models) }})
	if len(models) == 0 && e.config.Assistant == config.AssistantDemo {
		checks = append(checks, doctor.Check{Area: "models", Run: func(context.Context) []doctor.Finding {
			return one(doctor.Found("model", doctor.Warn, "no model is configured: answers are scripted", "bot setup model"))
		}})
	}
	return checks
}

// examineDefault finds that the assistant of new conversations is none of those there
// are, with which the bot does not start.
func (e *examination) examineDefault(models map[assistant.Name]assistant.Model) []doctor.Finding {
	agents, err := newPrograms(e.config, e.env).knownAgents()
	if err != nil {
		return nil // the check of agents says it
	}
	there := map[string]bool{config.AssistantDemo: true}
	for name := range models {
		there[string(name)] = true
	}
	for _, a := range agents {
		if a.asked || acp.Installed(a.config) {
			there[string(a.config.Name)] = true
		}
	}
	if err := checkDefault(e.config, there); err != nil {
		return one(doctor.Failed("assistant", err, "see where the value comes from: bot config show"))
	}
	return nil
}

// examineModel makes one short request with a picture and a tool. What is refused is left
// out and asked again, to tell what the model cannot do.
func (e *examination) examineModel(ctx context.Context, m assistant.Model) []doctor.Finding {
	name, option := string(m.Name()), strings.ToUpper(string(m.Name()))
	sees, uses := true, true
	begin := time.Now()
	cost, err := ask(ctx, m, sees, uses)
	for _, next := range [][2]bool{{false, true}, {true, false}, {false, false}} {
		if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.Unsupported) {
			break
		}
		if again, failed := ask(ctx, m, next[0], next[1]); failed == nil {
			sees, uses, cost, err = next[0], next[1], again, nil
		}
	}
	if err != nil {
		f := doctor.Failed(name, err, "check "+option+"_API_KEY, "+option+"_BASE_URL and the model's name: bot config show")
		if cause := errors.Unwrap(err); cause != nil && fault.Is(err, fault.Unavailable) {
			f.Detail = strings.TrimSuffix(f.Detail, ".") + ": " + cause.Error()
		}
		return one(f)
	}
	var found []doctor.Finding
	model := m.Model()
	say := func(check string, status doctor.Status, detail, fix string) {
		found = append(found, doctor.Found(name+check, status, detail, fix))
	}
	say("", doctor.OK, fmt.Sprintf("%s answered in %s", model, time.Since(begin).Round(time.Millisecond)), "")
	if uses {
		say(" tools", doctor.OK, model+" supports tools", "")
	} else {
		say(" tools", doctor.Warn, model+" does not support tools: it can answer, but not change anything", "choose a model with tool calling")
	}
	if free := e.unlimited(ctx, m); len(free) > 0 && cost == 0 { // an API that says what a request cost says so of all models
		say(" budget", doctor.Warn, "no price is known for "+strings.Join(free, ", ")+": BUDGET_*_USD does not limit it", "set BUDGET_DAY_TOKENS, too")
	}
	pictures := " accepts pictures"
	if !sees {
		pictures = " does not accept pictures; it answers without those that people send"
	}
	say(" pictures", doctor.OK, model+pictures, "")
	say(" context", doctor.Skip, fmt.Sprintf("the API does not say how much fits; up to %d tokens are sent (CONTEXT_TOKENS)", e.config.ContextTokens), "")
	return found
}

// unlimited returns the models of an API, its own, those of tiers and those that profiles name
// for new conversations, that no budget limits: without a price nothing adds up to dollars.
func (e *examination) unlimited(ctx context.Context, m assistant.Model) (models []string) {
	b := &e.config.Budget
	if b.TurnMicros+b.PersonMicros+b.DayMicros == 0 || b.TurnTokens+b.PersonTokens+b.DayTokens > 0 {
		return nil
	}
	inUse := map[string]bool{m.Model(): true}
	for _, t := range e.config.Tiers {
		if t.Assistant == string(m.Name()) {
			inUse[t.Model] = true
		}
	}
	if e.config.Assistant == string(m.Name()) {
		for _, p := range e.profilesNow(ctx) {
			inUse[cmp.Or(p.Model, m.Model())] = true
		}
	}
	for _, model := range slices.Sorted(maps.Keys(inUse)) {
		if _, known := spend.PriceOf(model); !known {
			models = append(models, model)
		}
	}
	return models
}

// ask makes a request and returns what the API says that it cost, in US dollars.
func ask(ctx context.Context, m assistant.Model, picture, tool bool) (cost float64, err error) {
	said := messages.NewText(messages.RoleUser, "Reply with the word OK.")
	if picture {
		said.Blocks = append(said.Blocks, messages.Attachment{Name: "blank.png", MediaType: "image/png", Width: blankSide, Height: blankSide, Data: blank()})
	}
	request := assistant.Request{Conversation: "doctor", Run: "doctor", Array: []messages.Message{said}}
	if tool {
		request.Tools = []messages.ToolSpec{{Name: "now", Description: "Returns the time.", Schema: []byte(`{"type":"object","properties":{}}`)}}
	}
	for event, err := range m.Complete(ctx, request) {
		if err != nil {
			return 0, err
		}
		if done, ok := event.(assistant.Finished); ok {
			cost = done.Usage.CostUSD
		}
	}
	return cost, nil
}

// blankSide is the side of a picture that no model finds too small, in pixels.
const blankSide = 64

// blank returns a white picture.
func blank() string {
	picture := image.NewGray(image.Rect(0, 0, blankSide, blankSide))
	for i := range picture.Pix {
		picture.Pix[i] = 0xff
	}
	var b bytes.Buffer
	_ = png.Encode(&b, picture) // a buffer takes everything
	return b.String()
}
