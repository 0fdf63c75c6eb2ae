// Package failpoint names the places where the crash tests end the process.
//
// The program only says that it comes to a place. Nothing happens there, and nothing
// that can be given to the program, no variable, file or flag, changes that: what to
// do is set by Arm, which only tests call. The linker leaves it out of every other
// binary; internal/arch and the check of the release keep it that way. It is a leaf.
package failpoint

// Point is a place between two steps of a message's way through the program.
type Point string

// The points, in the order in which a message passes them.
const (
	Received       Point = "received-not-stored"
	Stored         Point = "stored-not-acknowledged"
	Claimed        Point = "claimed"
	BeforeModel    Point = "before-the-model"
	MidStream      Point = "mid-stream"
	AnswerStored   Point = "answer-stored"
	SentUnrecorded Point = "sent-not-recorded"
)

// The points around effects, which only some messages pass.
const (
	CallRecorded Point = "tool-call-recorded"     // on record as pending
	CallBegun    Point = "tool-call-begun"        // on record as executing, and in the audit log
	CallRan      Point = "tool-call-ran"          // its result is not on record
	ResultStored Point = "tool-result-stored"     // the model does not have it
	PushRecorded Point = "push-recorded-not-done" // and so on
	Pushed       Point = "pushed-not-told"
	PullRecorded Point = "pull-recorded-not-opened"
	PullOpened   Point = "pull-opened-not-told"
)

// Effects lists the points around effects.
func Effects() []Point {
	return []Point{CallRecorded, CallBegun, CallRan, ResultStored, PushRecorded, Pushed, PullRecorded, PullOpened}
}

// The points of a fork into a place of its own.
const (
	ForkStored Point = "fork-stored-not-opened"
	ForkOpened Point = "fork-opened-not-recorded"
	ForkPlaced Point = "fork-recorded-not-told"
)

// Points lists all that every message passes.
func Points() []Point {
	return []Point{Received, Stored, Claimed, BeforeModel, MidStream, AnswerStored, SentUnrecorded}
}

// reached is nil but in a crash test. It is global because a place in the middle of
// a package is what nobody hands anything to.
var reached func(Point)

// Hit says that the program is at a point.
func Hit(p Point) {
	if reached != nil {
		reached(p)
	}
}

// Arm sets what happens at every point from now on. A test calls it before the
// program that it runs starts, and only once.
func Arm(do func(Point)) { reached = do }
