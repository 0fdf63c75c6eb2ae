package store

import (
	"context"
	"encoding/json"
	"fmt"

	"remote-agent/internal/fault"
)

// SeedImport says what ImportSeed stored.
type SeedImport struct {
	Codebases, Conversations, Sessions int64
	Skipped                            int64 // conversations that were here already
}

// The three tables of seed 002 with the columns that it has. $1 is empty.
var seedTables = []portable{
	{kind: "codebase", columns: portableCodebase.columns, from: `remote_agent_codebases t WHERE $1 = '' ORDER BY t.id`},
	{
		kind: "conversation",
		columns: append(cols(asText, "id platform_type platform_conversation_id codebase_id cwd ai_assistant_type"),
			cols(asTime, "created_at updated_at")...),
		from: `remote_agent_conversations t WHERE $1 = '' ORDER BY t.id`,
	},
	{
		kind: "session",
		columns: append(append(append(cols(asText, "id conversation_id codebase_id ai_assistant_type assistant_session_id"),
			cols(asBool, "active")...), cols(asJSON, "metadata")...), cols(asTime, "started_at ended_at")...),
		from: `remote_agent_sessions t WHERE $1 = '' ORDER BY t.conversation_id, t.started_at DESC, t.id DESC`,
	},
}

// seedDefaults are the columns that seed 002 does not have.
var seedDefaults = map[string]map[string]string{
	"conversation": {"settings": "{}", "inbox_seq": "0", "stop_seq": "0", "delivery_seq": "0"},
	"session": {
		"parent_session_id": "null", "agent_name": `""`, "model": `""`, "system_prompt": "null", "user_prompt": `""`, "config": "null",
		"status": `"completed"`, "result": "null", "error": "null", "input_tokens": "0", "output_tokens": "0", "last_seq": "0",
	},
}

type portableRow = map[string]json.RawMessage

// ImportSeed stores the codebases, conversations and sessions of another database
// that has the tables of seed 002, such as that of the program which the seed
// describes. Each conversation with its sessions is a transaction; one that is
// here already is skipped, so it can be repeated. Of several active sessions of a
// conversation the newest stays active. The other database is only read; without
// the tables it is fault.Invalid.
func (s *Store) ImportSeed(ctx context.Context, from *Store) (done SeedImport, err error) {
	rows := make(map[string][]portableRow)
	err = from.InRead(ctx, func(tx *Tx) error {
		clear(rows)
		for _, table := range seedTables {
			if err := tx.exportTable(ctx, table, "", func(kind string, fields []Field) error {
				row, err := seedRow(kind, fields)
				rows[kind] = append(rows[kind], row)
				return err
			}); err != nil {
				return &fault.Error{Kind: fault.Invalid, Err: err,
					Public: "The other database cannot be read: it needs the tables remote_agent_codebases, remote_agent_conversations and remote_agent_sessions with the columns of seed 002."}
			}
		}
		return nil
	})
	if err != nil {
		return done, err
	}
	codebases := make(map[string]string)
	err = s.InTx(ctx, func(tx *Tx) error {
		for _, row := range rows["codebase"] {
			here, _, err := tx.ImportShared(ctx, "codebase", row)
			if err != nil {
				return fmt.Errorf("codebase %s: %w", row["id"], err)
			}
			codebases[string(row["id"])] = here
		}
		return nil
	})
	if err != nil {
		return done, err
	}
	done.Codebases = int64(len(codebases))
	sessions := make(map[string][]portableRow)
	for _, row := range rows["session"] {
		sessions[string(row["conversation_id"])] = append(sessions[string(row["conversation_id"])], row)
	}
	for _, conversation := range rows["conversation"] {
		stored := false
		own := sessions[string(conversation["id"])]
		err := s.InTx(ctx, func(tx *Tx) error {
			var err error
			stored, err = tx.importSeedConversation(ctx, conversation, own, codebases)
			return err
		})
		switch {
		case err != nil:
			return done, fmt.Errorf("conversation %s: %w", conversation["id"], err)
		case stored:
			done.Conversations++
			done.Sessions += int64(len(own))
		default:
			done.Skipped++
		}
	}
	return done, nil
}

func (t *Tx) importSeedConversation(ctx context.Context, conversation portableRow, sessions []portableRow, codebases map[string]string) (bool, error) {
	var id, platform, platformID string
	for column, to := range map[string]*string{"id": &id, "platform_type": &platform, "platform_conversation_id": &platformID} {
		if err := json.Unmarshal(conversation[column], to); err != nil {
			return false, fault.Wrap(err, fault.Invalid, "read "+column)
		}
	}
	here, err := t.HasConversation(ctx, id, platform, platformID)
	if err != nil || here {
		return false, err
	}
	active := false
	for i, row := range append([]portableRow{conversation}, sessions...) {
		kind := "session"
		if i == 0 {
			kind = "conversation"
		} else if string(row["active"]) == "true" {
			if active {
				row["active"] = json.RawMessage("false")
			} else {
				row["status"] = json.RawMessage(`"running"`)
			}
			active = true
		}
		if to := codebases[string(row["codebase_id"])]; to != "" {
			row["codebase_id"] = json.RawMessage(`"` + to + `"`)
		}
		if err := t.ImportRow(ctx, kind, row); err != nil {
			return false, err
		}
	}
	return true, nil
}

func seedRow(kind string, fields []Field) (portableRow, error) {
	row := make(portableRow)
	for name, value := range seedDefaults[kind] {
		row[name] = json.RawMessage(value)
	}
	for _, f := range fields {
		value := f.Value
		if f.Name == "active" && value == nil {
			value = false
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "read "+f.Name)
		}
		row[f.Name] = encoded
	}
	return row, nil
}
