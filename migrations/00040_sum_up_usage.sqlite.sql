-- 00040, works with binaries from 00001: sums of usage over years

-- +goose Up
-- What was used on a day that is over, summed up (spend.Day), in days since 1970. The
-- records are what counts: whatever changes one of a day takes its row away, and sums are
-- made from the records until the day is summed up again.
CREATE TABLE usage_days (
  day INTEGER PRIMARY KEY,
  format INTEGER NOT NULL,
  body BLOB NOT NULL
);

-- Events that may have usage on other days than that on which they were accepted. All
-- others have it on that day only, so that it is enough to count them there.
CREATE TABLE usage_spread (
  event_id TEXT PRIMARY KEY
) WITHOUT ROWID;

INSERT INTO usage_spread (event_id)
SELECT DISTINCT u.event_id
FROM usage_records u LEFT JOIN inbound_events e ON e.id = u.event_id
WHERE u.event_id IS NOT NULL AND u.at_ms / 86400000 IS NOT e.accepted_ms / 86400000;

-- +goose StatementBegin
CREATE TRIGGER usage_days_added AFTER INSERT ON usage_records
BEGIN
  DELETE FROM usage_days WHERE day = NEW.at_ms / 86400000;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER usage_days_added_late AFTER INSERT ON usage_records
WHEN NEW.event_id IS NOT NULL
  AND NEW.at_ms / 86400000 IS NOT (SELECT e.accepted_ms / 86400000 FROM inbound_events e WHERE e.id = NEW.event_id)
BEGIN
  INSERT INTO usage_spread (event_id) VALUES (NEW.event_id) ON CONFLICT (event_id) DO NOTHING;
  DELETE FROM usage_days WHERE day = (SELECT e.accepted_ms / 86400000 FROM inbound_events e WHERE e.id = NEW.event_id);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER usage_days_changed
  AFTER UPDATE OF event_id, conversation_id, codebase_id, actor, ai_assistant_type, model, input_tokens, output_tokens, cost_micros, at_ms ON usage_records
BEGIN
  DELETE FROM usage_days WHERE day IN (OLD.at_ms / 86400000, NEW.at_ms / 86400000);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER usage_days_changed_late AFTER UPDATE OF event_id, at_ms ON usage_records
WHEN NEW.event_id IS NOT NULL
  AND NEW.at_ms / 86400000 IS NOT (SELECT e.accepted_ms / 86400000 FROM inbound_events e WHERE e.id = NEW.event_id)
BEGIN
  INSERT INTO usage_spread (event_id) VALUES (NEW.event_id) ON CONFLICT (event_id) DO NOTHING;
  DELETE FROM usage_days WHERE day = (SELECT e.accepted_ms / 86400000 FROM inbound_events e WHERE e.id = NEW.event_id);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER usage_days_removed AFTER DELETE ON usage_records
BEGIN
  DELETE FROM usage_days WHERE day = OLD.at_ms / 86400000;
  DELETE FROM usage_spread WHERE event_id = OLD.event_id AND NOT EXISTS (SELECT 1 FROM usage_records u WHERE u.event_id = OLD.event_id);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER usage_days_left AFTER UPDATE OF event_id ON usage_records WHEN OLD.event_id IS NOT NULL
BEGIN
  DELETE FROM usage_spread WHERE event_id = OLD.event_id AND NOT EXISTS (SELECT 1 FROM usage_records u WHERE u.event_id = OLD.event_id);
END;
-- +goose StatementEnd

-- What cannot be looked up any more may have been used on any day. Most events have no usage.
-- +goose StatementBegin
CREATE TRIGGER usage_days_event_deleted AFTER DELETE ON inbound_events
WHEN EXISTS (SELECT 1 FROM usage_records u WHERE u.event_id = OLD.id)
BEGIN
  INSERT INTO usage_spread (event_id) VALUES (OLD.id) ON CONFLICT (event_id) DO NOTHING;
  DELETE FROM usage_days WHERE day = OLD.accepted_ms / 86400000;
END;
-- +goose StatementEnd
