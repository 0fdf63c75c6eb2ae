// Package resident keeps small what the process has in memory.
package resident

import "runtime/debug"

// Release gives back what only the start needed: garbage, and on Linux the pages of
// the program's file, of which those that are used again come back from the
// system's cache, at about a millisecond in all. It is called a few times in the
// life of a process. It does nothing that can fail for the caller.
func Release() {
	debug.FreeOSMemory()
	releaseProgram()
}

// ReleaseProgram gives back the pages of the program's file alone.
func ReleaseProgram() { releaseProgram() }
