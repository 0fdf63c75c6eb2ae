-- 00027, works with binaries from 00001: runs, and what the status of a session means
-- Columns that end in _ms are Unix milliseconds; cost is in millionths of a US dollar.

-- +goose Up
-- One row is one run of a turn: what was done to answer an inbound event, up to its
-- end or up to where a process stopped or died. What goes on after that is a run of
-- its own. A run that waits for a person's decision or for its next try is running
-- still, and says so in waiting. The table has one index only, because every turn
-- writes it twice; entry_id refers to inbound_events, whose rows outlive the session.
CREATE TABLE agent_runs (
  session_id UUID NOT NULL REFERENCES remote_agent_sessions(id) ON DELETE CASCADE,
  number BIGINT NOT NULL,
  entry_id UUID NOT NULL,
  status TEXT NOT NULL DEFAULT 'running'
    CHECK (status IN ('running', 'completed', 'failed', 'stopped', 'interrupted')),
  waiting BOOLEAN NOT NULL DEFAULT false,
  started_ms BIGINT NOT NULL,
  -- NULL while it runs. Of an interrupted run it is when that was found out.
  finished_ms BIGINT,
  -- Time at work, without waiting. NULL where it is not known.
  duration_ms BIGINT,
  model TEXT NOT NULL DEFAULT '',
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  -- NULL where the model's price is not known.
  cost_micros BIGINT,
  error TEXT,
  PRIMARY KEY (session_id, number)
);

-- The planner needs no samples of what people say, which would outlive the rows.
ALTER TABLE agent_runs ALTER COLUMN error SET STATISTICS 0;

-- Every turn changes the status twice, so only the failed ones are in an index:
-- those that run are found by the inbound events that are open.
DROP INDEX idx_remote_agent_sessions_status_started;
CREATE INDEX idx_remote_agent_sessions_failed
  ON remote_agent_sessions(started_at, id) WHERE status = 'failed';

-- Most turns are about no codebase.
DROP INDEX idx_usage_records_codebase;
CREATE INDEX idx_usage_records_codebase
  ON usage_records(codebase_id, at_ms) WHERE codebase_id IS NOT NULL;

-- Turns from before this was kept: when they began and how long they took is not known,
-- so that a run begins when its message was accepted.
INSERT INTO agent_runs (
  session_id, number, entry_id, status, started_ms, finished_ms, model, input_tokens, output_tokens, cost_micros, error)
SELECT
  e.session_id, row_number() OVER (PARTITION BY e.session_id ORDER BY e.seq, e.id), e.id,
  CASE e.state WHEN 'done' THEN 'completed' WHEN 'running' THEN 'interrupted' WHEN 'refused' THEN 'stopped' ELSE e.state END,
  e.accepted_ms,
  COALESCE(
    (SELECT max(u.at_ms) FROM usage_records u WHERE u.event_id = e.id),
    (SELECT max(m.created_at) * 1000 FROM agent_messages m WHERE m.run_id = CAST(e.id AS TEXT)),
    e.accepted_ms),
  COALESCE((SELECT max(u.model) FROM usage_records u WHERE u.event_id = e.id), s.model),
  COALESCE((SELECT sum(u.input_tokens) FROM usage_records u WHERE u.event_id = e.id), 0),
  COALESCE((SELECT sum(u.output_tokens) FROM usage_records u WHERE u.event_id = e.id), 0),
  (SELECT sum(u.cost_micros) FROM usage_records u WHERE u.event_id = e.id),
  CASE WHEN e.state IN ('failed', 'stopped') THEN e.error END
FROM inbound_events e JOIN remote_agent_sessions s ON s.id = e.session_id
WHERE e.lane = 'turn' AND e.attempts > 0 AND e.state IN ('done', 'running', 'failed', 'stopped', 'refused');

-- A session runs while a run of it does, has failed if the last one did, and is
-- completed otherwise. Whether it has ended is another matter: ended_at says that.
UPDATE remote_agent_sessions SET status = CASE
  WHEN (SELECT r.status FROM agent_runs r WHERE r.session_id = remote_agent_sessions.id ORDER BY r.number DESC LIMIT 1) = 'failed'
  THEN 'failed' ELSE 'completed' END
WHERE status <> 'failed';
