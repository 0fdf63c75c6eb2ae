package store

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
)

// portableShared are the tables that conversations refer to, or that belong to
// people and to no conversation; what is referred to first. Only the first one is
// in an export of a single conversation.
var portableShared = []portable{
	portableCodebase,
	portableIdentity,
	portableMemoryPerson,
	portableMemoryAccount,
	portableMemory("semantic_memory", "semantic_memories", "fact", "category", "source_events history", ""),
	portableMemory("episodic_memory", "episodic_memories", "content", "", "sources", "expires_at"),
}

var portableMemoryPerson = portable{
	kind: "memory_person", table: "memory_people",
	columns: cols("text: user_id bool: enabled int: seq"),
	from: `memory_people t WHERE $1 = '' AND NOT EXISTS (SELECT 1 FROM memory_accounts a WHERE a.account = t.user_id)
		ORDER BY t.user_id`, // what is left of an account that was linked means nothing
}

// portableMemoryAccount says which accounts are one person. Where an account was
// linked is not part of it: whoever moves is told nothing of old links.
var portableMemoryAccount = portable{
	kind: "memory_account", table: "memory_accounts",
	columns: cols("text: user_id account bool: whispered text: last_key int: linked_ms"),
	from:    `memory_accounts t WHERE $1 = '' ORDER BY t.user_id, t.account`,
}

// portableMemory is a table of memories. What can be computed from the text is
// not exported: see derivedOf.
func portableMemory(kind, table, text, category, lists, expires string) portable {
	return portable{
		kind: kind, table: table,
		columns: cols("text: user_id int: seq text: run_id " + text + " " + category + " origin codebase_id float: confidence int: access_count json: " + lists +
			" time: created_at updated_at " + expires + " text: embedding_model last_key bytes: embedding"),
		from: table + ` t WHERE $1 = '' ORDER BY t.user_id, t.seq`,
	}
}

// extraColumn is a column that is not in the row of an export.
type extraColumn struct {
	name  string
	value any
}

// derivedOf returns the columns of a memory that follow from its text. A memory
// that could not have been stored here is fault.Invalid: its text is empty or too
// long, or its vector has another length, is zero or no number.
func derivedOf(p portable, values []any) ([]extraColumn, error) {
	member := func(name string) any {
		i := slices.IndexFunc(p.columns, func(c portableColumn) bool { return c.name == name })
		if i < 0 {
			return nil
		}
		return values[i]
	}
	person, _ := member("user_id").(string)
	text, ok := member("fact").(string)
	if !ok {
		text, _ = member("content").(string)
	}
	if _, err := memory.CleanText(text); err != nil {
		return nil, err
	}
	if raw, ok := member("embedding").([]byte); ok {
		v, err := memory.Decode(raw)
		if err == nil {
			err = v.Check()
		}
		if err != nil {
			return nil, err
		}
	}
	return []extraColumn{{"content_hash", memory.Hash(text)}, {"terms", storedTerms(person, text)}}, nil
}

// importShared stores a row of portableShared, and says whether it did. A person
// of whom something is remembered here already, or who has switched memory off
// here, is not touched.
func (t *Portable) importShared(ctx context.Context, p portable, row map[string]json.RawMessage) (bool, error) {
	switch p.kind {
	case portableIdentity.kind:
		for _, absent := range [][2]string{{"granted_by", `""`}, {"granted_ms", "0"}, {"removed_ms", "0"}, {"reads", "false"}} {
			if row[absent[0]] == nil { // an export from before it was kept who gave a role
				row[absent[0]] = json.RawMessage(absent[1])
			}
		}
		n, err := t.insertPortable(ctx, p, row, " ON CONFLICT (platform_type, user_id) DO NOTHING")
		return n > 0, err
	case portableMemoryPerson.kind:
		n, err := t.insertPortable(ctx, p, row, ` ON CONFLICT (user_id) DO UPDATE SET seq = excluded.seq, enabled = excluded.enabled
			WHERE memory_people.enabled AND memory_people.seq = 0`)
		return n > 0, err
	case portableMemoryAccount.kind:
		return t.importAccount(ctx, row)
	}
	if string(row["embedding"]) == "null" { // else it would never be embedded again
		row["embedding_model"] = json.RawMessage(`""`)
	}
	values, err := decodePortable(p, row)
	if err != nil {
		return false, err
	}
	derived, err := derivedOf(p, values)
	if err != nil {
		return false, &fault.Error{Kind: fault.Invalid, Public: "The memory cannot be used: " + fault.Public(err), Err: err}
	}
	n, err := t.insertPortable(ctx, p, row, "", derived...)
	return n > 0, err
}

// importAccount links an account to its person, as it was, unless it is linked
// here already or something is remembered of it here: that stays its own.
func (t *Portable) importAccount(ctx context.Context, row map[string]json.RawMessage) (bool, error) {
	values, err := decodePortable(portableMemoryAccount, row)
	if err != nil {
		return false, err
	}
	person, _ := values[0].(string)
	if !strings.HasPrefix(person, personPrefix) {
		return false, fault.New(fault.Invalid, "An account is linked to something that is no person.")
	}
	known, err := t.tx.exists(ctx, `SELECT 1 FROM memory_people WHERE user_id = $1 AND (seq > 0 OR NOT enabled)`, values[1])
	if err != nil || known {
		return false, wrap(err, "look for a person")
	}
	n, err := t.insertPortable(ctx, portableMemoryAccount, row, " ON CONFLICT (account) DO NOTHING")
	return n > 0, err
}
