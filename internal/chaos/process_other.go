//go:build !linux

package chaos

import "errors"

var errNotHere = errors.New("only on Linux")

func (*bot) freeze() error { return errNotHere }
func (*bot) thaw() error   { return errNotHere }

func (*bot) limitFiles(uint64) error { return errNotHere }

const unlimited = 0

func (*bot) figures() (resident, ofFiles, descriptors float64, err error) { return 0, 0, 0, errNotHere }

func (*bot) worked() (Work, error) { return Work{}, errNotHere }
