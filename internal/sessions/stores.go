package sessions

import (
	"context"
	"strings"
	"time"

	"remote-agent/internal/messages"
	"remote-agent/internal/wording"
)

// TaskStore keeps the standing tasks of profiles, as a part of a transaction.
type TaskStore interface {
	// Schedule returns the standing task of a conversation; ok is false if it has
	// none.
	Schedule(ctx context.Context, conversationID string) (s Schedule, ok bool, err error)

	// DueSchedules returns those whose next run is not after now. Those of profiles
	// without an interval rest.
	DueSchedules(ctx context.Context, now time.Time, limit int) ([]Schedule, error)

	// AdvanceSchedule moves a standing task to its next run if it is still the one
	// that was read, which ok says. With an entry it counts as a run.
	AdvanceSchedule(ctx context.Context, s Schedule, now, next time.Time, entryID string) (ok bool, err error)

	// TakePlace has a conversation go on as another one did whose place it takes:
	// with its profile and its standing task, which stays the same one.
	TakePlace(ctx context.Context, from, to Conversation) error

	// EndSchedule switches the standing task of a conversation off. ok is false if
	// it had none.
	EndSchedule(ctx context.Context, conversationID string) (ok bool, err error)
}

// NameOf names an actor ("telegram/42") for people: by name if the database has one.
func NameOf(ctx context.Context, people PeopleStore, actor string) (string, error) {
	platform, id, _ := strings.Cut(actor, "/")
	who, _, err := people.Identity(ctx, messages.Platform(platform), messages.UserID(id))
	return wording.Who(who.Name, actor), err
}

// PeopleStore keeps who may use the bot and who asked to, as a part of a transaction.
type PeopleStore interface {
	// ServiceState returns what holds for the whole service.
	ServiceState(ctx context.Context) (ServiceState, error)

	// Identity returns a person; ok is false if nothing is known.
	Identity(ctx context.Context, p messages.Platform, id messages.UserID) (i Identity, ok bool, err error)

	// Access returns what is known of a person, and the state of the service, as
	// they are at this moment.
	Access(ctx context.Context, p messages.Platform, id messages.UserID) (Access, error)

	// SaveIdentity stores a person; of one who is there it replaces the name and
	// the time of the last refusal.
	SaveIdentity(ctx context.Context, i Identity) error

	// SetRole gives a person a role, or takes it away; with removed they are a
	// stranger from now on, whatever the configuration says.
	SetRole(ctx context.Context, i Identity, by string, removed bool) error

	// Roles returns everybody who was given a role or removed.
	Roles(ctx context.Context) ([]Identity, error)

	// SamePerson reports whether two accounts, such as slack/U1, are linked to each other.
	SamePerson(ctx context.Context, a, b string) (bool, error)

	// PrivateConversation returns where a person last wrote to the bot alone, since a
	// time; fault.NotFound if they did not.
	PrivateConversation(ctx context.Context, p messages.Platform, id messages.UserID, since time.Time) (Conversation, error)

	// HasOwner reports whether a platform has an owner.
	HasOwner(ctx context.Context, p messages.Platform) (bool, error)

	// SaveOwnerCode stores the SHA-256 (hex) of a one-time code that makes its
	// sender the owner on a platform, replacing earlier ones of that platform.
	SaveOwnerCode(ctx context.Context, p messages.Platform, hash string, expires time.Time) error

	// UseOwnerCode reports whether hash is a valid code of the platform, and
	// uses it up.
	UseOwnerCode(ctx context.Context, p messages.Platform, hash string) (bool, error)

	// Pairing returns the request of a person to be let in, however old; ok is false
	// if there is none.
	Pairing(ctx context.Context, p messages.Platform, id messages.UserID) (pairing Pairing, ok bool, err error)

	// PairingsSince returns the requests that wait and were made after a time.
	PairingsSince(ctx context.Context, since time.Time) ([]Pairing, error)

	// AskPairing stores a request in place of an earlier one of the person, and sets
	// its number. It reports false, and stores nothing, while there are too many.
	AskPairing(ctx context.Context, p *Pairing) (bool, error)

	// SaveCards records by which deliveries owners are asked.
	SaveCards(ctx context.Context, number int64, cards []messages.DeliveryID) error
}

// CodebaseStore reads repositories and their command registries, as a part of a
// transaction.
type CodebaseStore interface {
	// FindCodebase returns the codebase of a repository URL (its canonical
	// form); ok is false if there is none.
	FindCodebase(ctx context.Context, repositoryURL string) (c Codebase, ok bool, err error)

	// CodebaseCommands returns the command registry of a codebase.
	CodebaseCommands(ctx context.Context, id string) (map[string]CommandDef, error)
}

// CallStore keeps the record of tool calls, as a part of a transaction.
type CallStore interface {
	// BeginToolCall moves a pending call to executing and returns it. begun is false
	// if it was executing already; one that has ended is a fault.Conflict.
	BeginToolCall(ctx context.Context, sessionID, callID string) (c ToolCall, begun bool, err error)

	// OpenCalls returns the calls of a session that have not ended, whether they were
	// begun or not, in the order of their recording.
	OpenCalls(ctx context.Context, sessionID string) ([]ToolCall, error)
}
