-- 00013, works with binaries from 00001: search in messages, care of old rows
-- What people and assistants wrote is indexed, the first 100,000 characters of
-- each message; calls of tools, their output and thinking are not.

-- +goose Up
-- Punctuation becomes blanks, so that a path or an address is found by each of
-- its words, as on SQLite. The bound on the length keeps below what a tsvector
-- can hold: a longer one would refuse the message. The cost keeps the planner
-- from computing it for each message of a table instead of asking the index; the
-- path is set so that it is a call with that cost and not spliced in.
-- +goose StatementBegin
CREATE FUNCTION agent_message_words(content TEXT) RETURNS tsvector
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 10000 SET search_path = pg_catalog AS $$
  SELECT to_tsvector('pg_catalog.simple'::regconfig, translate(left(content, 100000),
    '!"#$%&''()*+,-./:;<=>?@[\]^_`{|}~“”„‘’‚«»‹›–—…·•¡¿、。，！？：；（）「」『』 ',
    '                                                               '))
$$;
-- +goose StatementEnd

CREATE INDEX idx_agent_messages_words
  ON agent_messages USING gin (agent_message_words(content))
  WHERE kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system');

CREATE INDEX idx_remote_agent_sessions_started
  ON remote_agent_sessions(started_at, id);

CREATE INDEX idx_inbound_events_kept
  ON inbound_events(accepted_ms) WHERE raw IS NOT NULL OR data IS NOT NULL;
