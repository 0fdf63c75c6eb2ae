package sandbox

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"remote-agent/internal/fault"
)

// The helper is this program with one of these as its only argument. It is given
// three files: what to do, where to report, and a pipe on which it is told to end
// and whose end means the same, so that it never outlives the daemon.
const (
	argSupervise = "\x01sandbox-supervise"
	argEnter     = "\x01sandbox-enter"

	// oneProcessor keeps the helper small; it has next to nothing to do.
	oneProcessor = "GOMAXPROCS=1"

	fdOrder   = 3
	fdReport  = 4
	fdControl = 5
	fdOutlets = 6 // only with outlets
	fdReady   = 4 // of argEnter
)

// order is what the helper is asked to do. It travels in a file in memory: never
// in the arguments, which everybody can read.
type order struct {
	Probe   bool // only find out whether Have can be had
	Confine bool // false: limits only
	Have    features

	Argv []string
	Env  []string
	Dir  string

	System   []string // read-only, may be missing
	ReadOnly []string
	Writable []string
	Sealed   []string
	Hidden   []string
	Root     string // where the view is put together
	Tmp, Shm string // shown as /tmp and /dev/shm in a view

	Network bool
	Ports   []uint16
	Outlets []uint16
	Limits  Limits
	Nice    int  // value of the daemon, which the program gets, too
	Daemon  int  // process id
	Global  bool // we are the real root, whom the kernel's limit of processes spares
	Tasks   int  // on the whole system, where that limit counts them all
}

// features are what the helper uses.
type features struct {
	Namespaces bool // user, mount and IPC
	PIDs       bool
	Net        bool
	Landlock   int
	Seccomp    bool
	PIDMax     bool // the PID namespace has a limit of its own
}

// report is one line that the helper writes.
type report struct {
	Started bool `json:",omitempty"`
	Group   int  `json:",omitempty"` // the program's, with Started

	Done   bool          `json:",omitempty"`
	Code   int           `json:",omitempty"`
	Signal string        `json:",omitempty"`
	Ended  End           `json:",omitempty"`
	CPU    time.Duration `json:",omitempty"`
	MaxRSS int64         `json:",omitempty"`

	Have *features `json:",omitempty"` // answer to a probe

	Fail   string     `json:",omitempty"` // for the operator
	Kind   fault.Kind `json:",omitempty"`
	Public string     `json:",omitempty"`
}

// failure makes a report of an error.
func failure(err error) report {
	r := report{Fail: err.Error(), Kind: fault.Unavailable, Public: "The sandbox could not be set up, so the command was not run."}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		r.Kind, r.Public = e.Kind, e.Public
	}
	return r
}

// err is the reverse of failure.
func (r report) err() error {
	if r.Fail == "" {
		return nil
	}
	return &fault.Error{Kind: r.Kind, Public: r.Public, Err: errors.New(r.Fail)}
}

// file puts the order into a file in memory, which both stages of the helper read.
func (o order) file() (*os.File, error) {
	fd, err := unix.MemfdCreate("sandbox", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "sandbox")             //nolint:gosec // a descriptor fits
	if err := gob.NewEncoder(f).Encode(o); err != nil { // unlike JSON it keeps bytes that are no UTF-8
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readOrder reads the order in the helper. The file stays open for the next stage.
func readOrder() (order, error) {
	var o order
	err := gob.NewDecoder(io.NewSectionReader(fromStart(fdOrder), 0, 1<<30)).Decode(&o)
	return o, err
}

// fromStart reads a descriptor without moving its position and without owning it:
// an os.File would close it when it is collected.
type fromStart int

func (f fromStart) ReadAt(p []byte, off int64) (int, error) {
	n, err := unix.Pread(int(f), p, off)
	if err == nil && n == 0 {
		err = io.EOF
	}
	return max(n, 0), err
}
