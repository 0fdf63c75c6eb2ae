// Package orchestratortest runs the engine for tests as its surroundings see it: a
// platform, a model and tools that are scripted and in memory, a real SQLite file, and
// time that stands still until everybody waits (testing/synctest).
//
//	orchestratortest.Run(t, func(w *orchestratortest.World) {
//		w.Model.On("hello", orchestratortest.Say("Hello to you."))
//		w.Start()
//		w.Chat.Say("hello")
//		w.Settle()
//		w.Chat.Want("Hello to you.")
//	})
//
// A World is what is there besides the program: the people, the platform with its
// messages, the model, the tools with what they did, the disk. A Process is the program
// at work in it. It can be stopped in order, killed, killed at a failpoint, and followed
// by the next one, on the same file, under the same platform, which delivers again what
// was not acknowledged.
//
// A process that was killed changes nothing any more: whatever of it comes to the
// database, the platform or the model ends there (runtime.Goexit). So it is like
// kill -9, but for transactions that had begun, which may commit or not.
//
// Tests that use KillAt have to let the failpoints know of it, in a file that ends in
// _test.go and before any test runs: failpoint.Arm(orchestratortest.Reached). They may
// not run in parallel with each other.
package orchestratortest
