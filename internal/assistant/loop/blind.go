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

// isBlind reports whether a request failed because of its pictures or documents. That a
// model takes none at all is remembered of it.
func (r *run) isBlind(err error) bool {
	blind, is := errors.AsType[*assistant.BlindError](err)
	if !is || !assistant.ShowsFiles(r.array.Messages()...) {
		return false
	}
	if r.unreadable = blind.These; !r.unreadable {
		r.assistant.blind.Store(r.asked(), true)
	}
	return true
}

// hideFiles takes the files out of the array for a model that takes none, or not these. It
// says so, once, if the request is about one, or if a tool of the turn shows one.
func (r *run) hideFiles() error {
	array := r.array.Messages()
	if _, is := r.assistant.blind.Load(r.asked()); !is && !r.unreadable || !assistant.ShowsFiles(array...) {
		return nil
	}
	why := "this model cannot look at it"
	notice := fmt.Sprintf("The model %s cannot look at pictures or documents, so it answers without them. Choose one that can with /model, or describe what is in it.", r.asked())
	if r.unreadable {
		why = "the model could not read the files of this conversation"
		notice = "The model could not read a picture or document of this conversation, so it answers without all of them. Send what matters again in another form, or describe what is in it."
	}
	r.array = messages.NewArray(assistant.WithoutFiles(array, why)...)
	for _, m := range slices.Backward(array) {
		if assistant.ShowsFiles(m) && !r.noticed {
			r.noticed = true
			return r.emit(assistant.Notice{Text: notice, Once: m.Role == messages.RoleTool})
		}
		if m.Role == messages.RoleUser {
			break
		}
	}
	return nil
}
