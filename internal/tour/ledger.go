package tour

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/emulator/telegram"
	"remote-agent/internal/lists"
)

// sums is what the emulated Telegram shows in the end.
type sums struct {
	accepted int      // messages of Ann that the bot has acknowledged
	answers  int      // of them, those with at least one answer
	lost     []string // acknowledged, and there is no answer
	doubled  []string // there is more than one
	stray    int      // messages of the bot that answer nothing
	edits    int
	requests int
}

// count compares what Ann wrote with what she sees.
func (t *tour) count(ctx context.Context) (sums, error) {
	if err := t.settled(ctx); err != nil {
		return sums{}, err
	}
	var accepted []question
	for _, q := range t.asked {
		if t.tg.Acknowledged(q.update) {
			accepted = append(accepted, q)
		}
	}
	s := sumUp(accepted, t.tg.ChatView(ann).FromBot(), t.beside)
	s.requests = t.ai.Stats().Received
	return s, s.err()
}

// sumUp looks for the answers to what was accepted among what is shown. Files and
// what is expected beside them is no stray.
func sumUp(accepted []question, shown []telegram.Message, beside []string) sums {
	s := sums{accepted: len(accepted)}
	claimed := make(map[int]bool)
	for _, q := range accepted {
		found := 0
		for _, m := range shown {
			if strings.Contains(m.Text, q.answer) {
				claimed[m.ID] = true
				found++
			}
		}
		switch {
		case found == 0:
			s.lost = append(s.lost, q.text)
			continue
		case found > 1:
			s.doubled = append(s.doubled, q.text)
		}
		s.answers++
	}
	for _, m := range shown {
		s.edits += m.Edits
		if !claimed[m.ID] && m.Text != "" && !slices.ContainsFunc(beside, func(part string) bool { return strings.Contains(m.Text, part) }) {
			s.stray++
		}
	}
	return s
}

func (s sums) err() error {
	errs := lists.Map(s.lost, func(q string) error { return fmt.Errorf("%w: %q", errLost, q) })
	for _, q := range s.doubled {
		errs = append(errs, fmt.Errorf("%w: %q", errDoubled, q))
	}
	return errors.Join(errs...)
}

func (s sums) lines() []string {
	return []string{
		fmt.Sprintf("messages accepted  %d", s.accepted),
		fmt.Sprintf("answers            %d", s.answers),
		fmt.Sprintf("lost               %d", len(s.lost)),
		fmt.Sprintf("doubled            %d", len(s.doubled)),
		fmt.Sprintf("stray messages     %d", s.stray),
		fmt.Sprintf("edits              %d", s.edits),
		fmt.Sprintf("model requests     %d", s.requests),
	}
}
