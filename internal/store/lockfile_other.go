//go:build !unix

package store

import "context"

// fileLock does nothing where there is no flock: one process per data directory
// is then the operator's promise.
type fileLock struct{}

func lockFile(context.Context, string) (*fileLock, error) { return &fileLock{}, nil }

func refuseLinks(string) error { return nil }

func (l *fileLock) release() error { return nil }
