//go:build !unix

package cluster

import (
	"errors"
	"time"
)

// Cluster is a running server: none, on this system.
type Cluster struct{}

// Start says that it cannot be done here.
func Start(time.Duration, ...string) (*Cluster, error) {
	return nil, errors.New("a throwaway PostgreSQL is only made on Unix")
}

// URL returns nothing.
func (*Cluster) URL() string { return "" }

// Version returns zero.
func (*Cluster) Version() int { return 0 }

// Restart does nothing.
func (*Cluster) Restart() error { return nil }

// Stop does nothing.
func (*Cluster) Stop() {}
