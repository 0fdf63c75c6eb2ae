//go:build !unix

package main

import "os"

// hangups returns nothing: this system has no SIGHUP.
func hangups() (received <-chan os.Signal, stop func()) { return nil, func() {} }
