-- 00021, works with binaries from 00001: who a message is from, and deleting deletes
-- sender is the platform's id of who sent an event, so that what waits of one person
-- can be counted.

-- +goose Up
ALTER TABLE inbound_events ADD COLUMN sender TEXT NOT NULL DEFAULT '';

CREATE INDEX idx_inbound_events_person
  ON inbound_events(platform_type, sender) WHERE lane = 'turn' AND state = 'waiting';

CREATE INDEX idx_inbound_events_refused
  ON inbound_events(platform_type, sender, accepted_ms) WHERE state = 'refused' AND error = 'overflow';

-- What a person was answered to commands may be what is remembered of them.
CREATE INDEX idx_inbound_events_commands
  ON inbound_events(platform_type, sender) WHERE lane = 'control';
UPDATE inbound_events SET sender = COALESCE(json_extract(data, '$.sender.id'), '')
WHERE lane = 'control' AND json_valid(data);

-- A command that was carried out needs its text no more, and neither does an edit:
-- the message that it changed has the text, or was answered before.
UPDATE inbound_events SET data = NULL, raw = NULL
WHERE state NOT IN ('waiting', 'running') AND (data IS NOT NULL OR raw IS NOT NULL)
  AND (lane = 'control' OR state = 'ignored');

-- Words of a deleted row are taken out of the indexes in the same transaction, and
-- what earlier deletions have left in them is merged away.
INSERT INTO agent_messages_fts(agent_messages_fts, rank) VALUES ('secure-delete', 1);
INSERT INTO agent_messages_fts(agent_messages_fts) VALUES ('optimize');
INSERT INTO episodic_words(episodic_words, rank) VALUES ('secure-delete', 1);
INSERT INTO episodic_words(episodic_words) VALUES ('optimize');
INSERT INTO semantic_words(semantic_words, rank) VALUES ('secure-delete', 1);
INSERT INTO semantic_words(semantic_words) VALUES ('optimize');
