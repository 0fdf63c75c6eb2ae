package sessions

import "time"

// RunStatus is how a run stands.
type RunStatus string

// The statuses of a run. All but the first are final.
const (
	RunRunning     RunStatus = "running"     // at work, or put aside until somebody decides or the next try is due
	RunCompleted   RunStatus = "completed"   // it has an answer
	RunFailed      RunStatus = "failed"      // it ended with an error
	RunStopped     RunStatus = "stopped"     // somebody stopped it
	RunInterrupted RunStatus = "interrupted" // its process stopped or died; another run goes on with the turn
)

// Session is the status of a session whose last run has this one.
func (s RunStatus) Session() Status {
	switch s {
	case RunRunning:
		return Running
	case RunFailed:
		return Failed
	case RunCompleted, RunStopped, RunInterrupted:
	}
	return Completed
}

// Run is a row of agent_runs: what was done to answer an entry, up to its end or
// up to where a process stopped or died.
type Run struct {
	SessionID    string
	Number       int64 // 1 for the first of its session
	EntryID      string
	Status       RunStatus
	Waiting      bool // put aside: for a decision, or until its next try
	StartedAt    time.Time
	FinishedAt   time.Time      // zero while it runs
	Duration     *time.Duration // at work, without waiting; nil where it is not known
	Model        string
	InputTokens  int64
	OutputTokens int64
	CostMicros   *int64 // millionths of a US dollar; nil where the price is not known
	Error        string // for the operator
}

// NewRun is what a run begins with.
type NewRun struct {
	SessionID string
	EntryID   string
	Model     string
	Again     bool // the turn has begun before
}

// BegunRun is a run that has begun, with what was appended to its session.
type BegunRun struct {
	Number int64
	Seqs   []int64 // of the messages, in order
	Newest int64   // the number of the session's newest message before them; 0 for none
}

// RunEnd is how a run ends. With the status running it is put aside instead.
type RunEnd struct {
	Status RunStatus
	Model  string        // empty: the one it began with
	Error  string        // may be empty
	Took   time.Duration // at work since it began or went on
}
