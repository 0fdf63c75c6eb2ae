package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/assistant"
	"remote-agent/internal/command"
)

const (
	ownChoice    = "its own choice" // the model of an agent for which none was chosen
	listPatience = 3 * time.Second  // how long a command waits for the list of an API's models
	maxOffered   = 20               // how many models of an agent are named
	maxSimilar   = 3                // how many models of an API are suggested
)

// noModel reports whether a text cannot be the name of a model.
func noModel(name string) bool {
	return len(name) > 100 || strings.ContainsFunc(name, func(c rune) bool { return c <= ' ' || c > '~' || c == '`' })
}

// listedBy returns the models that an assistant lists; none if it has no list.
func listedBy(ctx context.Context, a assistant.Assistant) []string {
	lister, ok := a.(assistant.Lister)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	names, err := lister.Models(ctx)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(names, noModel)
}

// offeredBy returns the models that an agent offers, and no others can be chosen; none for
// any other assistant.
func offeredBy(ctx context.Context, a assistant.Assistant) []string {
	if _, ok := a.(assistant.Agent); !ok {
		return nil
	}
	return listedBy(ctx, a)
}

// offers names the models of an agent: those that are like a word, if there are any.
func offers(models []string, word string) string {
	near := similar(models, word)
	if len(near) == 0 {
		near = models
	}
	text := "It offers `" + strings.Join(near[:min(len(near), maxOffered)], "`, `") + "`"
	if more := len(near) - maxOffered; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + "."
}

// unlisted says that an API does not list a model, and which names are like it. The model is
// chosen all the same: no list has every alias, and some servers have no list.
func unlisted(ctx context.Context, a assistant.Assistant, name, prefix string) string {
	names := listedBy(ctx, a)
	if len(names) == 0 || slices.ContainsFunc(names, func(listed string) bool { return isModel(listed, name) }) {
		return ""
	}
	text := "\n\n⚠ Its API does not list this model."
	if near := similar(names, name); len(near) > 0 {
		text += fmt.Sprintf(" Did you mean `%s`?", strings.Join(near[:min(len(near), maxSimilar)], "`, `"))
	}
	return fmt.Sprintf("%s `%smodel default` resets it.", text, prefix)
}

// similar returns the models with a word in their names, or else the one that a slip makes of it.
func similar(models []string, word string) []string {
	near := slices.DeleteFunc(slices.Clone(models), func(listed string) bool { return !strings.Contains(plainName(listed), plainName(word)) })
	if one, ok := command.Nearest(word, models); ok && len(near) == 0 {
		near = []string{one}
	}
	return near
}

// isModel reports whether a name asks for a model that is listed: as it is, without the date
// or the tag that its full name ends in, or with a variant behind it.
func isModel(listed, name string) bool {
	rest, longer := strings.CutPrefix(listed, strings.TrimSuffix(name, "-latest"))
	return longer && (rest == "" || rest == ":latest" || strings.HasPrefix(rest, "-20")) || strings.HasPrefix(name, listed+":")
}

// plainName is a model's name as people say it.
func plainName(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "") }
