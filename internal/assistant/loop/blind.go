package loop

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"remote-agent/internal/assistant"
	"remote-agent/internal/messages"
)

// asked returns the name of the model that the turn asks.
func (r *run) asked() string { return cmp.Or(r.turn.Model, r.assistant.model.Model()) }

// isBlind reports whether a request failed because the model takes no pictures or
// documents, which is remembered of it.
func (r *run) isBlind(err error) bool {
	if _, is := errors.AsType[*assistant.BlindError](err); !is || !assistant.ShowsFiles(r.array.Messages()...) {
		return false
	}
	r.assistant.blind.Store(r.asked(), true)
	return true
}

// hideFiles takes the files out of the array for a model that takes none, and says
// so if the request is about one.
func (r *run) hideFiles() error {
	array := r.array.Messages()
	if _, is := r.assistant.blind.Load(r.asked()); !is || !assistant.ShowsFiles(array...) {
		return nil
	}
	r.array = messages.NewArray(assistant.WithoutFiles(array, "this model cannot look at it")...)
	for _, m := range slices.Backward(array) {
		if m.Role != messages.RoleUser {
			continue
		}
		if assistant.ShowsFiles(m) {
			return r.emit(assistant.Notice{Text: fmt.Sprintf(
				"The model %s cannot look at pictures or documents, so it answers without them. Choose one that can with /model, or describe what is in it.", r.asked())})
		}
		break
	}
	return nil
}
