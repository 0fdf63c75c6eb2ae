//go:build !unix

package acp

import (
	"context"

	"remote-agent/internal/fault"
)

// Exec refuses: without process groups, what an agent started could not be
// ended.
func Exec(context.Context, StartSpec) (Process, error) {
	return nil, fault.New(fault.Unsupported, "External agents need a Unix system.")
}
