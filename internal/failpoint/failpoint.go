// Package failpoint names the places where the crash tests end the process.
//
// In a normal build Hit is an empty function that the compiler removes; only a
// binary built with the tag "failpoint" can be told to die, by the variable
// BOT_FAILPOINT. It is a leaf.
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

// Points lists all of them.
func Points() []Point {
	return []Point{Received, Stored, Claimed, BeforeModel, MidStream, AnswerStored, SentUnrecorded}
}
