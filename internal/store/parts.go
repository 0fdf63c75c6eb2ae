//nolint:revive // what a part is says its type, not the method that returns it
package store

// The parts of a transaction: each has the statements about one kind of rows. A part
// is no more than the transaction, so that it costs nothing to have one.
type part struct{ tx *Tx }

type (
	// Conversations keeps conversations, and knows which of them have something to do.
	Conversations part
	// Leases gives leases and makes changes under them.
	Leases part
	// Inbox keeps what came in, and up to where something was read.
	Inbox part
	// Sessions keeps sessions and their runs.
	Sessions part
	// Messages keeps the message array of sessions.
	Messages part
	// Calls keeps the record of tool calls.
	Calls part
	// Deliveries keeps what goes out.
	Deliveries part
	// Buttons keeps what pressing a button means.
	Buttons part
	// Questions keeps what people are asked, and the rules they made of their answers.
	Questions part
	// Proposals keeps plans.
	Proposals part
	// Spending keeps what turns used.
	Spending part
	// Profiles keeps agent profiles.
	Profiles part
	// Tasks keeps standing tasks.
	Tasks part
	// People keeps who may use the bot, and whether it works for them at all.
	People part
	// Registry keeps codebases.
	Registry part
	// Memories keeps what is remembered, and finds it.
	Memories part
	// Persons keeps which accounts are one person, whose memories they share.
	Persons part
	// Lessons keeps which messages may teach something.
	Lessons part
	// Files keeps what people attach.
	Files part
	// SignIn keeps who is signed in on the web, and the keys of the API.
	SignIn part
	// AuditLog reads and checks what Tx.Audit wrote.
	AuditLog part
	// Search finds and lists messages.
	Search part
	// Lists lists sessions, and finds some by their words.
	Lists part
	// Pages reads what is shown of conversations and sessions.
	Pages part
	// Queue shows what waits or failed, and settles it.
	Queue part
	// Board keeps the conversations in the browser.
	Board part
	// Care measures and removes what is not kept.
	Care part
	// Portable exports and imports rows.
	Portable part
)

func (t *Tx) Conversations() *Conversations { return (*Conversations)(&t.self) }
func (t *Tx) Leases() *Leases               { return (*Leases)(&t.self) }
func (t *Tx) Inbox() *Inbox                 { return (*Inbox)(&t.self) }
func (t *Tx) Sessions() *Sessions           { return (*Sessions)(&t.self) }
func (t *Tx) Messages() *Messages           { return (*Messages)(&t.self) }
func (t *Tx) Calls() *Calls                 { return (*Calls)(&t.self) }
func (t *Tx) Deliveries() *Deliveries       { return (*Deliveries)(&t.self) }
func (t *Tx) Buttons() *Buttons             { return (*Buttons)(&t.self) }
func (t *Tx) Questions() *Questions         { return (*Questions)(&t.self) }
func (t *Tx) Proposals() *Proposals         { return (*Proposals)(&t.self) }
func (t *Tx) Spending() *Spending           { return (*Spending)(&t.self) }
func (t *Tx) Profiles() *Profiles           { return (*Profiles)(&t.self) }
func (t *Tx) Tasks() *Tasks                 { return (*Tasks)(&t.self) }
func (t *Tx) People() *People               { return (*People)(&t.self) }
func (t *Tx) Registry() *Registry           { return (*Registry)(&t.self) }
func (t *Tx) Memories() *Memories           { return (*Memories)(&t.self) }
func (t *Tx) Persons() *Persons             { return (*Persons)(&t.self) }
func (t *Tx) Lessons() *Lessons             { return (*Lessons)(&t.self) }
func (t *Tx) Files() *Files                 { return (*Files)(&t.self) }
func (t *Tx) SignIn() *SignIn               { return (*SignIn)(&t.self) }
func (t *Tx) AuditLog() *AuditLog           { return (*AuditLog)(&t.self) }
func (t *Tx) Search() *Search               { return (*Search)(&t.self) }
func (t *Tx) Lists() *Lists                 { return (*Lists)(&t.self) }
func (t *Tx) Pages() *Pages                 { return (*Pages)(&t.self) }
func (t *Tx) Queue() *Queue                 { return (*Queue)(&t.self) }
func (t *Tx) Board() *Board                 { return (*Board)(&t.self) }
func (t *Tx) Care() *Care                   { return (*Care)(&t.self) }
func (t *Tx) Portable() *Portable           { return (*Portable)(&t.self) }
