//nolint:revive // what a part is says its type, not the method that returns it
package store

// The parts of a transaction: each has the statements about one kind of rows. A part
// is the transaction under another name, so that it costs nothing to have one.
type (
	// Conversations keeps conversations, and knows which of them have something to do.
	Conversations Tx
	// Leases gives leases and makes changes under them.
	Leases Tx
	// Inbox keeps what came in, and up to where something was read.
	Inbox Tx
	// Sessions keeps sessions and their runs.
	Sessions Tx
	// Messages keeps the message array of sessions.
	Messages Tx
	// Calls keeps the record of tool calls.
	Calls Tx
	// Deliveries keeps what goes out.
	Deliveries Tx
	// Buttons keeps what pressing a button means.
	Buttons Tx
	// Questions keeps what people are asked, and the rules they made of their answers.
	Questions Tx
	// Proposals keeps plans.
	Proposals Tx
	// Spending keeps what turns used.
	Spending Tx
	// Profiles keeps agent profiles.
	Profiles Tx
	// Tasks keeps standing tasks.
	Tasks Tx
	// People keeps who may use the bot, and whether it works for them at all.
	People Tx
	// Registry keeps codebases.
	Registry Tx
	// Memories keeps what is remembered, and finds it.
	Memories Tx
	// Persons keeps which accounts are one person, whose memories they share.
	Persons Tx
	// Lessons keeps which messages may teach something.
	Lessons Tx
	// Files keeps what people attach.
	Files Tx
	// SignIn keeps who is signed in on the web, and the keys of the API.
	SignIn Tx
	// AuditLog reads and checks what Tx.Audit wrote.
	AuditLog Tx
	// Search finds and lists messages.
	Search Tx
	// Lists lists sessions, and finds some by their words.
	Lists Tx
	// Pages reads what is shown of conversations and sessions.
	Pages Tx
	// Queue shows what waits or failed, and settles it.
	Queue Tx
	// Board keeps the conversations in the browser.
	Board Tx
	// Care measures and removes what is not kept.
	Care Tx
	// Portable exports and imports rows.
	Portable Tx
)

func (t *Tx) Conversations() *Conversations { return (*Conversations)(t) }
func (t *Tx) Leases() *Leases               { return (*Leases)(t) }
func (t *Tx) Inbox() *Inbox                 { return (*Inbox)(t) }
func (t *Tx) Sessions() *Sessions           { return (*Sessions)(t) }
func (t *Tx) Messages() *Messages           { return (*Messages)(t) }
func (t *Tx) Calls() *Calls                 { return (*Calls)(t) }
func (t *Tx) Deliveries() *Deliveries       { return (*Deliveries)(t) }
func (t *Tx) Buttons() *Buttons             { return (*Buttons)(t) }
func (t *Tx) Questions() *Questions         { return (*Questions)(t) }
func (t *Tx) Proposals() *Proposals         { return (*Proposals)(t) }
func (t *Tx) Spending() *Spending           { return (*Spending)(t) }
func (t *Tx) Profiles() *Profiles           { return (*Profiles)(t) }
func (t *Tx) Tasks() *Tasks                 { return (*Tasks)(t) }
func (t *Tx) People() *People               { return (*People)(t) }
func (t *Tx) Registry() *Registry           { return (*Registry)(t) }
func (t *Tx) Memories() *Memories           { return (*Memories)(t) }
func (t *Tx) Persons() *Persons             { return (*Persons)(t) }
func (t *Tx) Lessons() *Lessons             { return (*Lessons)(t) }
func (t *Tx) Files() *Files                 { return (*Files)(t) }
func (t *Tx) SignIn() *SignIn               { return (*SignIn)(t) }
func (t *Tx) AuditLog() *AuditLog           { return (*AuditLog)(t) }
func (t *Tx) Search() *Search               { return (*Search)(t) }
func (t *Tx) Lists() *Lists                 { return (*Lists)(t) }
func (t *Tx) Pages() *Pages                 { return (*Pages)(t) }
func (t *Tx) Queue() *Queue                 { return (*Queue)(t) }
func (t *Tx) Board() *Board                 { return (*Board)(t) }
func (t *Tx) Care() *Care                   { return (*Care)(t) }
func (t *Tx) Portable() *Portable           { return (*Portable)(t) }

func (t *Conversations) tx() *Tx { return (*Tx)(t) }
func (t *Leases) tx() *Tx        { return (*Tx)(t) }
func (t *Inbox) tx() *Tx         { return (*Tx)(t) }
func (t *Sessions) tx() *Tx      { return (*Tx)(t) }
func (t *Messages) tx() *Tx      { return (*Tx)(t) }
func (t *Calls) tx() *Tx         { return (*Tx)(t) }
func (t *Deliveries) tx() *Tx    { return (*Tx)(t) }
func (t *Buttons) tx() *Tx       { return (*Tx)(t) }
func (t *Questions) tx() *Tx     { return (*Tx)(t) }
func (t *Proposals) tx() *Tx     { return (*Tx)(t) }
func (t *Spending) tx() *Tx      { return (*Tx)(t) }
func (t *Profiles) tx() *Tx      { return (*Tx)(t) }
func (t *Tasks) tx() *Tx         { return (*Tx)(t) }
func (t *People) tx() *Tx        { return (*Tx)(t) }
func (t *Registry) tx() *Tx      { return (*Tx)(t) }
func (t *Memories) tx() *Tx      { return (*Tx)(t) }
func (t *Persons) tx() *Tx       { return (*Tx)(t) }
func (t *Lessons) tx() *Tx       { return (*Tx)(t) }
func (t *Files) tx() *Tx         { return (*Tx)(t) }
func (t *SignIn) tx() *Tx        { return (*Tx)(t) }
func (t *AuditLog) tx() *Tx      { return (*Tx)(t) }
func (t *Search) tx() *Tx        { return (*Tx)(t) }
func (t *Lists) tx() *Tx         { return (*Tx)(t) }
func (t *Pages) tx() *Tx         { return (*Tx)(t) }
func (t *Queue) tx() *Tx         { return (*Tx)(t) }
func (t *Board) tx() *Tx         { return (*Tx)(t) }
func (t *Care) tx() *Tx          { return (*Tx)(t) }
func (t *Portable) tx() *Tx      { return (*Tx)(t) }
