//go:build !unix

package codebase

import (
	"errors"
	"os"
)

const supported = false

var errLocked = errors.New("locked")

func flock(*os.File) error { return errors.ErrUnsupported }
