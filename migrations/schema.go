package migrations

import (
	"fmt"
	"strings"
)

// SchemaSeparator stands between what is executed of Schema at a time: each statement on
// SQLite, and all of them on PostgreSQL, where each would be a round trip.
const SchemaSeparator = "\n;;\n"

// Schema returns what all migrations together make of an empty database, with
// SchemaSeparator in between, and the version that it is of. It is written by "make
// generate"; tests in package store compare it with what the migrations make.
func Schema(dialect Dialect) (text string, version int64) {
	first, rest, _ := strings.Cut(texts()["schema/"+string(dialect)+".sql"], "\n")
	if _, err := fmt.Sscanf(first, "-- version %d", &version); err != nil {
		return "", 0
	}
	return strings.TrimSuffix(rest, "\n"), version
}
