//go:build !unix

package main

import "errors"

// startAgain is not needed: nothing can ask for it, without a local socket.
func startAgain() error { return errors.ErrUnsupported }
