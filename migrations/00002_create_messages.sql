-- 00002, works with binaries from 00001: messages and tool calls
-- Tables of seed 003. Times in them are Unix seconds, as the seed has it.

-- +goose Up
CREATE TABLE agent_messages (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_id UUID NOT NULL REFERENCES remote_agent_sessions(id) ON DELETE CASCADE,
  role TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system', 'tool')),
  content TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  -- One row is one block: seq numbers the message within its session, part the
  -- block within its message.
  seq BIGINT NOT NULL,
  part BIGINT NOT NULL DEFAULT 0,
  kind TEXT NOT NULL,
  data_json TEXT,
  provider_metadata TEXT,
  run_id VARCHAR(64) NOT NULL DEFAULT '',
  UNIQUE (session_id, seq, part)
);

CREATE INDEX idx_agent_messages_session_created
  ON agent_messages(session_id, created_at);

CREATE INDEX idx_agent_messages_run
  ON agent_messages(run_id);

CREATE TABLE agent_tool_calls (
  id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_id UUID NOT NULL REFERENCES remote_agent_sessions(id) ON DELETE CASCADE,
  message_id BIGINT REFERENCES agent_messages(id) ON DELETE SET NULL,
  tool_call_id TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  request TEXT NOT NULL,
  response TEXT,
  status TEXT NOT NULL DEFAULT 'pending'
    CHECK (status IN ('pending', 'executing', 'completed', 'failed')),
  created_at BIGINT NOT NULL,
  completed_at BIGINT,
  execution_time_ms BIGINT,
  error_details TEXT,
  -- When the tool began, in Unix milliseconds: execution_time_ms counts from it.
  executing_ms BIGINT,
  UNIQUE (session_id, tool_call_id)
);

CREATE INDEX idx_agent_tool_calls_session
  ON agent_tool_calls(session_id);

CREATE INDEX idx_agent_tool_calls_status
  ON agent_tool_calls(session_id, status);

CREATE INDEX idx_agent_tool_calls_message
  ON agent_tool_calls(message_id);
