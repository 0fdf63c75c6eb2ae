package anthropic

import "errors"

// form is what a model does not take of what is set for all of them. The zero form leaves
// nothing out.
type form struct {
	thinking   thinkingForm
	effortless bool // without Config.Effort
	forgetful  bool // without thinking, new and old, for what is in the array
}

// thinkingForm is how much of Config.ThinkingBudget a model takes. Each comes after what was
// refused.
type thinkingForm int

const (
	thinkingAsSet thinkingForm = iota
	thinkingOther              // of the other kind: the older models take only a budget, the newest none
	thinkingNone
)

// after returns the form to try when a request in f was refused with err: f itself if there
// is none.
func (f form) after(err error, sent *messagesRequest) form {
	switch {
	case errors.Is(err, errReplay) && sent.hasThinking():
		f.forgetful = true
	case errors.Is(err, errThinking) && sent.Thinking != nil:
		f.thinking++
	case errors.Is(err, errEffort) && sent.OutputConfig != nil:
		f.effortless = true
	}
	return f
}

// toThinking returns the option for Config.ThinkingBudget in a form. A model that cannot
// decide itself may think for half of the answer.
func (m *Model) toThinking(f form) *thinkingConfig {
	adaptive := m.thinking == ThinkingAdaptive
	budget := m.thinking
	if adaptive {
		budget = m.maxTokens / 2
	}
	if f.thinking == thinkingOther {
		adaptive = !adaptive
	}
	switch {
	case m.thinking == 0, f.thinking == thinkingNone:
		return nil
	case adaptive:
		return &thinkingConfig{Type: "adaptive"}
	case budget < minThinkingBudget:
		return nil
	}
	return &thinkingConfig{Type: "enabled", BudgetTokens: budget}
}
