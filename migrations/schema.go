package migrations

import (
	_ "embed"
	"fmt"
	"strings"
)

// SchemaSeparator stands between the statements of Schema.
const SchemaSeparator = "\n;;\n"

//go:embed schema/sqlite.sql
var schema string

// Schema returns what all migrations together make of an empty SQLite database, as
// statements with SchemaSeparator between them, and the version that it is of. It is
// written by "make generate"; a test in package store compares it with what the
// migrations make.
func Schema() (text string, version int64) {
	first, rest, _ := strings.Cut(schema, "\n")
	if _, err := fmt.Sscanf(first, "-- version %d", &version); err != nil {
		return "", 0
	}
	return strings.TrimSuffix(rest, "\n"), version
}
