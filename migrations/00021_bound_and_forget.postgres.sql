-- 00021, works with binaries from 00001: who a message is from, and deleting deletes
-- sender is the platform's id of who sent an event, so that what waits of one person
-- can be counted.

-- +goose Up
ALTER TABLE inbound_events ADD COLUMN sender VARCHAR(255) NOT NULL DEFAULT '';

CREATE INDEX idx_inbound_events_person
  ON inbound_events(platform_type, sender) WHERE lane = 'turn' AND state = 'waiting';

CREATE INDEX idx_inbound_events_refused
  ON inbound_events(platform_type, sender, accepted_ms) WHERE state = 'refused' AND error = 'overflow';

-- What a person was answered to commands may be what is remembered of them.
CREATE INDEX idx_inbound_events_commands
  ON inbound_events(platform_type, sender) WHERE lane = 'control';
UPDATE inbound_events SET sender = COALESCE(left(substring(data FROM '"sender":[{]"id":"([^"\\]*)"'), 255), '')
WHERE lane = 'control' AND data IS NOT NULL;

-- A command that was carried out needs its text no more, and neither does an edit:
-- the message that it changed has the text, or was answered before.
UPDATE inbound_events SET data = NULL, raw = NULL
WHERE state NOT IN ('waiting', 'running') AND (data IS NOT NULL OR raw IS NOT NULL)
  AND (lane = 'control' OR state = 'ignored');

-- The planner needs no samples of what people say, which would outlive the rows.
ALTER TABLE agent_messages
  ALTER COLUMN content SET STATISTICS 0,
  ALTER COLUMN data_json SET STATISTICS 0,
  ALTER COLUMN provider_metadata SET STATISTICS 0;
ALTER TABLE agent_tool_calls
  ALTER COLUMN request SET STATISTICS 0,
  ALTER COLUMN response SET STATISTICS 0,
  ALTER COLUMN error_details SET STATISTICS 0;
ALTER TABLE remote_agent_sessions
  ALTER COLUMN system_prompt SET STATISTICS 0,
  ALTER COLUMN user_prompt SET STATISTICS 0,
  ALTER COLUMN config SET STATISTICS 0,
  ALTER COLUMN result SET STATISTICS 0,
  ALTER COLUMN error SET STATISTICS 0,
  ALTER COLUMN metadata SET STATISTICS 0;
ALTER TABLE inbound_events
  ALTER COLUMN data SET STATISTICS 0,
  ALTER COLUMN error SET STATISTICS 0;
ALTER TABLE deliveries
  ALTER COLUMN placeholder SET STATISTICS 0,
  ALTER COLUMN body SET STATISTICS 0,
  ALTER COLUMN buttons SET STATISTICS 0;
ALTER TABLE plans
  ALTER COLUMN goal SET STATISTICS 0,
  ALTER COLUMN body SET STATISTICS 0,
  ALTER COLUMN note SET STATISTICS 0;
ALTER TABLE approvals
  ALTER COLUMN request SET STATISTICS 0,
  ALTER COLUMN title SET STATISTICS 0,
  ALTER COLUMN detail SET STATISTICS 0,
  ALTER COLUMN note SET STATISTICS 0,
  ALTER COLUMN rule SET STATISTICS 0;
ALTER TABLE episodic_memories
  ALTER COLUMN content SET STATISTICS 0,
  ALTER COLUMN sources SET STATISTICS 0,
  ALTER COLUMN terms SET STATISTICS 0;
ALTER TABLE semantic_memories
  ALTER COLUMN fact SET STATISTICS 0,
  ALTER COLUMN source_events SET STATISTICS 0,
  ALTER COLUMN history SET STATISTICS 0,
  ALTER COLUMN terms SET STATISTICS 0;
ALTER TABLE agent_schedules
  ALTER COLUMN origin SET STATISTICS 0;
