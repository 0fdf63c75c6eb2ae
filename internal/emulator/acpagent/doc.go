// Package acpagent is a scripted coding agent that speaks the Agent Client
// Protocol on its standard input and output: every good path, and everything
// that a broken agent does.
//
// It is written from the protocol's description and shares no code with the
// client that it tests. What it does is a Script, which is JSON when it crosses
// a process border.
//
// A test runs it as a real program by starting itself again:
//
//	func TestMain(m *testing.M) {
//		acpagent.Hijack(os.Args) // does not return in the child
//		os.Exit(m.Run())
//	}
//
//	command, err := acpagent.Command(t.TempDir(), script) // argv of the agent
//
// or inside its own process, over pipes, with Run.
package acpagent
