//nolint:revive // what a part is says its type, not the method that returns it
package store

// The parts of a transaction: each has the statements about one kind of rows. A part
// is no more than the transaction, so that it costs nothing to have one.
type (
	// Conversations keeps conversations, and knows which of them have something to do.
	Conversations struct{ tx *Tx }
	// Leases gives leases and makes changes under them.
	Leases struct{ tx *Tx }
	// Inbox keeps what came in, and up to where something was read.
	Inbox struct{ tx *Tx }
	// Sessions keeps sessions and their runs.
	Sessions struct{ tx *Tx }
	// Messages keeps the message array of sessions.
	Messages struct{ tx *Tx }
	// Calls keeps the record of tool calls.
	Calls struct{ tx *Tx }
	// Deliveries keeps what goes out.
	Deliveries struct{ tx *Tx }
	// Buttons keeps what pressing a button means.
	Buttons struct{ tx *Tx }
	// Questions keeps what people are asked, and the rules they made of their answers.
	Questions struct{ tx *Tx }
	// Proposals keeps plans.
	Proposals struct{ tx *Tx }
	// Spending keeps what turns used.
	Spending struct{ tx *Tx }
	// Profiles keeps agent profiles.
	Profiles struct{ tx *Tx }
	// Tasks keeps standing tasks.
	Tasks struct{ tx *Tx }
	// People keeps who may use the bot, and whether it works for them at all.
	People struct{ tx *Tx }
	// Registry keeps codebases.
	Registry struct{ tx *Tx }
	// Memories keeps what is remembered, and finds it.
	Memories struct{ tx *Tx }
	// Persons keeps which accounts are one person, whose memories they share.
	Persons struct{ tx *Tx }
	// Lessons keeps which messages may teach something.
	Lessons struct{ tx *Tx }
	// Files keeps what people attach.
	Files struct{ tx *Tx }
	// SignIn keeps who is signed in on the web, and the keys of the API.
	SignIn struct{ tx *Tx }
	// AuditLog reads and checks what Tx.Audit wrote.
	AuditLog struct{ tx *Tx }
	// Search finds and lists messages.
	Search struct{ tx *Tx }
	// Lists lists sessions, and finds some by their words.
	Lists struct{ tx *Tx }
	// Pages reads what is shown of conversations and sessions.
	Pages struct{ tx *Tx }
	// Queue shows what waits or failed, and settles it.
	Queue struct{ tx *Tx }
	// Board keeps the conversations in the browser.
	Board struct{ tx *Tx }
	// Care measures and removes what is not kept.
	Care struct{ tx *Tx }
	// Portable exports and imports rows.
	Portable struct{ tx *Tx }
)

func (t *Tx) Conversations() Conversations { return Conversations{t} }
func (t *Tx) Leases() Leases               { return Leases{t} }
func (t *Tx) Inbox() Inbox                 { return Inbox{t} }
func (t *Tx) Sessions() Sessions           { return Sessions{t} }
func (t *Tx) Messages() Messages           { return Messages{t} }
func (t *Tx) Calls() Calls                 { return Calls{t} }
func (t *Tx) Deliveries() Deliveries       { return Deliveries{t} }
func (t *Tx) Buttons() Buttons             { return Buttons{t} }
func (t *Tx) Questions() Questions         { return Questions{t} }
func (t *Tx) Proposals() Proposals         { return Proposals{t} }
func (t *Tx) Spending() Spending           { return Spending{t} }
func (t *Tx) Profiles() Profiles           { return Profiles{t} }
func (t *Tx) Tasks() Tasks                 { return Tasks{t} }
func (t *Tx) People() People               { return People{t} }
func (t *Tx) Registry() Registry           { return Registry{t} }
func (t *Tx) Memories() Memories           { return Memories{t} }
func (t *Tx) Persons() Persons             { return Persons{t} }
func (t *Tx) Lessons() Lessons             { return Lessons{t} }
func (t *Tx) Files() Files                 { return Files{t} }
func (t *Tx) SignIn() SignIn               { return SignIn{t} }
func (t *Tx) AuditLog() AuditLog           { return AuditLog{t} }
func (t *Tx) Search() Search               { return Search{t} }
func (t *Tx) Lists() Lists                 { return Lists{t} }
func (t *Tx) Pages() Pages                 { return Pages{t} }
func (t *Tx) Queue() Queue                 { return Queue{t} }
func (t *Tx) Board() Board                 { return Board{t} }
func (t *Tx) Care() Care                   { return Care{t} }
func (t *Tx) Portable() Portable           { return Portable{t} }
