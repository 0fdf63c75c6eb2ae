package profile

import (
	"fmt"
	"strings"

	"remote-agent/internal/lists"
)

// Prompt returns the system prompt of a turn: what the service says to every
// model first, then the profile. The same profile gives the same bytes, so that
// providers find them in their caches.
func (p Profile) Prompt(base string) string {
	var parts []string
	add := func(text string) {
		if text = strings.TrimSpace(text); text != "" {
			parts = append(parts, text)
		}
	}
	add(base)
	add(p.SystemPrompt)
	if p.Description != "" {
		add("You are " + p.Name + ": " + strings.TrimSpace(p.Description))
	}
	add(section("Background", p.Lore))
	add(section("Objectives", p.Objectives))
	add(section("What you know", p.Knowledge))
	return strings.Join(parts, "\n\n")
}

// Task is the text of a run of the standing task. It is no command, whatever the
// objectives begin with.
func (p Profile) Task() string {
	return fmt.Sprintf("Scheduled run of %s. Do your standing task and report what you found or did:\n\n%s", p.Title(), list(p.Objectives))
}

func section(title string, items Texts) string {
	if len(items) == 0 {
		return ""
	}
	return title + ":\n" + list(items)
}

func list(items Texts) string {
	return strings.Join(lists.Map(items, func(item string) string { return "- " + strings.ReplaceAll(strings.TrimSpace(item), "\n", "\n  ") }), "\n")
}
