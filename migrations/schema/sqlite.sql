-- version 45
CREATE TABLE remote_agent_codebases (
  id TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
  name TEXT CHECK (length(name) <= 255) NOT NULL,
  repository_url TEXT CHECK (length(repository_url) <= 500),
  default_cwd TEXT CHECK (length(default_cwd) <= 500) NOT NULL,
  ai_assistant_type TEXT CHECK (length(ai_assistant_type) <= 20) NOT NULL DEFAULT 'claude',
  commands TEXT CHECK (json_valid(commands)) DEFAULT '{}',
  created_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
)
;;
CREATE TABLE remote_agent_conversations (
  id TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
  platform_type TEXT CHECK (length(platform_type) <= 20) NOT NULL,
  platform_conversation_id TEXT CHECK (length(platform_conversation_id) <= 255) NOT NULL,
  codebase_id TEXT REFERENCES remote_agent_codebases(id),
  cwd TEXT CHECK (length(cwd) <= 500),
  ai_assistant_type TEXT CHECK (length(ai_assistant_type) <= 20) NOT NULL DEFAULT 'claude',
  created_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  -- The last numbers given out, and the last one that a person stopped.
  inbox_seq BIGINT NOT NULL DEFAULT 0,
  stop_seq BIGINT NOT NULL DEFAULT 0,
  delivery_seq BIGINT NOT NULL DEFAULT 0,
  -- The lease. lease_until is in Unix milliseconds; lease_epoch only grows.
  lease_owner TEXT CHECK (length(lease_owner) <= 255),
  lease_until BIGINT NOT NULL DEFAULT 0,
  lease_epoch BIGINT NOT NULL DEFAULT 0, settings TEXT CHECK (json_valid(settings)) NOT NULL DEFAULT '{}', agent_id TEXT REFERENCES agents(id) ON DELETE SET NULL,
  UNIQUE (platform_type, platform_conversation_id)
)
;;
CREATE INDEX idx_remote_agent_conversations_codebase
  ON remote_agent_conversations(codebase_id)
;;
CREATE TABLE remote_agent_sessions (
  id TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
  conversation_id TEXT NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  codebase_id TEXT REFERENCES remote_agent_codebases(id),
  ai_assistant_type TEXT CHECK (length(ai_assistant_type) <= 20) NOT NULL,
  assistant_session_id TEXT CHECK (length(assistant_session_id) <= 255),
  active BOOLEAN NOT NULL DEFAULT true,
  metadata TEXT CHECK (json_valid(metadata)) DEFAULT '{}',
  started_at TEXT DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  ended_at TEXT,
  -- What seed 003 keeps about a session; the view agent_sessions shows it.
  agent_name TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL DEFAULT '',
  system_prompt TEXT,
  user_prompt TEXT NOT NULL DEFAULT '',
  config TEXT,
  status TEXT NOT NULL DEFAULT 'running'
    CHECK (status IN ('running', 'completed', 'failed')),
  result TEXT,
  error TEXT,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  last_seq BIGINT NOT NULL DEFAULT 0,
  parent_session_id TEXT REFERENCES remote_agent_sessions(id) ON DELETE SET NULL
, agent_id TEXT REFERENCES agents(id) ON DELETE SET NULL)
;;
CREATE INDEX idx_remote_agent_sessions_conversation
  ON remote_agent_sessions(conversation_id, active)
;;
CREATE INDEX idx_remote_agent_sessions_codebase
  ON remote_agent_sessions(codebase_id)
;;
CREATE INDEX idx_remote_agent_sessions_parent
  ON remote_agent_sessions(parent_session_id)
;;
CREATE UNIQUE INDEX idx_remote_agent_sessions_one_active
  ON remote_agent_sessions(conversation_id) WHERE active
;;
CREATE VIEW agent_sessions AS
SELECT
  id,
  agent_name,
  ai_assistant_type AS provider,
  model,
  system_prompt,
  user_prompt,
  config,
  status,
  unixepoch(started_at) AS started_at,
  unixepoch(ended_at) AS ended_at,
  result,
  error
FROM remote_agent_sessions
;;
CREATE TABLE agent_messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL REFERENCES remote_agent_sessions(id) ON DELETE CASCADE,
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
  run_id TEXT CHECK (length(run_id) <= 64) NOT NULL DEFAULT '', undone BOOLEAN NOT NULL DEFAULT false,
  UNIQUE (session_id, seq, part)
)
;;
CREATE INDEX idx_agent_messages_session_created
  ON agent_messages(session_id, created_at)
;;
CREATE INDEX idx_agent_messages_run
  ON agent_messages(run_id)
;;
CREATE TABLE agent_tool_calls (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL REFERENCES remote_agent_sessions(id) ON DELETE CASCADE,
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
)
;;
CREATE INDEX idx_agent_tool_calls_session
  ON agent_tool_calls(session_id)
;;
CREATE INDEX idx_agent_tool_calls_status
  ON agent_tool_calls(session_id, status)
;;
CREATE INDEX idx_agent_tool_calls_message
  ON agent_tool_calls(message_id)
;;
CREATE TABLE inbound_events (
  id TEXT PRIMARY KEY,
  platform_type TEXT CHECK (length(platform_type) <= 20) NOT NULL,
  account TEXT CHECK (length(account) <= 255) NOT NULL DEFAULT '',
  event_id TEXT CHECK (length(event_id) <= 255) NOT NULL,
  conversation_id TEXT REFERENCES remote_agent_conversations(id) ON DELETE SET NULL,
  seq BIGINT NOT NULL DEFAULT 0,
  lane TEXT NOT NULL DEFAULT 'turn' CHECK (lane IN ('turn', 'control')),
  state TEXT NOT NULL DEFAULT 'waiting'
    CHECK (state IN ('waiting', 'running', 'done', 'failed', 'stopped', 'refused', 'ignored', 'raw')),
  attempts BIGINT NOT NULL DEFAULT 0,
  next_ms BIGINT NOT NULL DEFAULT 0,
  session_id TEXT,
  message_id TEXT CHECK (length(message_id) <= 255) NOT NULL DEFAULT '',
  error TEXT,
  data TEXT,
  raw BLOB,
  accepted_ms BIGINT NOT NULL, sender TEXT NOT NULL DEFAULT '', preparation TEXT, checkpoint_seq BIGINT, checkpoint_ref TEXT CHECK (length(checkpoint_ref) <= 255), checkpoint_undone BOOLEAN NOT NULL DEFAULT false,
  UNIQUE (platform_type, account, event_id)
)
;;
CREATE UNIQUE INDEX idx_inbound_events_seq
  ON inbound_events(conversation_id, seq) WHERE seq > 0
;;
CREATE INDEX idx_inbound_events_open
  ON inbound_events(conversation_id, seq)
  WHERE lane = 'turn' AND state IN ('waiting', 'running')
;;
CREATE INDEX idx_inbound_events_control
  ON inbound_events(accepted_ms)
  WHERE lane = 'control' AND state = 'waiting'
;;
CREATE INDEX idx_inbound_events_message
  ON inbound_events(conversation_id, message_id) WHERE state = 'waiting'
;;
CREATE TABLE deliveries (
  id TEXT CHECK (length(id) <= 64) PRIMARY KEY,
  conversation_id TEXT NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  event_id TEXT REFERENCES inbound_events(id) ON DELETE SET NULL,
  seq BIGINT NOT NULL,
  reply_to TEXT CHECK (length(reply_to) <= 255) NOT NULL DEFAULT '',
  placeholder TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL DEFAULT '',
  final BOOLEAN NOT NULL DEFAULT false,
  control BOOLEAN NOT NULL DEFAULT false,
  message_id TEXT CHECK (length(message_id) <= 255) NOT NULL DEFAULT '',
  state TEXT NOT NULL DEFAULT 'pending'
    CHECK (state IN ('pending', 'sending', 'placed', 'sent', 'failed')),
  attempts BIGINT NOT NULL DEFAULT 0,
  next_ms BIGINT NOT NULL DEFAULT 0,
  error TEXT NOT NULL DEFAULT '',
  created_ms BIGINT NOT NULL, buttons TEXT CHECK (json_valid(buttons)) NOT NULL DEFAULT '[]', only_for TEXT CHECK (length(only_for) <= 255) NOT NULL DEFAULT '', file_name TEXT CHECK (length(file_name) <= 255) NOT NULL DEFAULT '', file BLOB,
  UNIQUE (conversation_id, seq)
)
;;
CREATE INDEX idx_deliveries_open
  ON deliveries(conversation_id, seq)
  WHERE state IN ('pending', 'sending', 'placed')
;;
CREATE INDEX idx_deliveries_event
  ON deliveries(event_id, seq)
;;
CREATE TABLE named_leases (
  name TEXT CHECK (length(name) <= 255) PRIMARY KEY,
  owner TEXT CHECK (length(owner) <= 255) NOT NULL,
  lease_until BIGINT NOT NULL
)
;;
CREATE TABLE identities (
  platform_type TEXT CHECK (length(platform_type) <= 20) NOT NULL,
  user_id TEXT CHECK (length(user_id) <= 255) NOT NULL,
  name TEXT NOT NULL DEFAULT '',
  role TEXT NOT NULL DEFAULT 'stranger' CHECK (role IN ('stranger', 'user', 'owner')),
  refused_ms BIGINT,
  created_ms BIGINT NOT NULL, granted_by TEXT NOT NULL DEFAULT '', granted_ms BIGINT NOT NULL DEFAULT 0, removed_ms BIGINT NOT NULL DEFAULT 0, reads BOOLEAN NOT NULL DEFAULT false,
  PRIMARY KEY (platform_type, user_id)
)
;;
CREATE INDEX idx_identities_owner
  ON identities(platform_type) WHERE role = 'owner'
;;
CREATE TABLE owner_codes (
  platform_type TEXT CHECK (length(platform_type) <= 20) PRIMARY KEY,
  code_hash TEXT CHECK (length(code_hash) <= 64) NOT NULL,
  expires_ms BIGINT NOT NULL
)
;;
CREATE TABLE audit_log (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  at_ms BIGINT NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  conversation_id TEXT NOT NULL DEFAULT '',
  target TEXT NOT NULL DEFAULT '',
  detail TEXT NOT NULL DEFAULT ''
, seq BIGINT, hash TEXT NOT NULL DEFAULT '', effect TEXT)
;;
CREATE INDEX idx_audit_log_conversation
  ON audit_log(conversation_id, id)
;;
CREATE TRIGGER remote_agent_conversations_assistant_locked
  BEFORE UPDATE ON remote_agent_conversations
  FOR EACH ROW WHEN OLD.ai_assistant_type IS NOT NEW.ai_assistant_type
BEGIN
  SELECT RAISE(ABORT, 'ai_assistant_type is locked at creation');
END
;;
CREATE TRIGGER audit_log_no_update
  BEFORE UPDATE ON audit_log
BEGIN
  SELECT RAISE(ABORT, 'audit_log is append-only');
END
;;
CREATE TRIGGER audit_log_no_delete
  BEFORE DELETE ON audit_log
BEGIN
  SELECT RAISE(ABORT, 'audit_log is append-only');
END
;;
CREATE UNIQUE INDEX idx_remote_agent_codebases_name
  ON remote_agent_codebases(name) WHERE name <> ''
;;
CREATE TABLE plan_numbers (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id TEXT NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE
)
;;
CREATE INDEX idx_plan_numbers_conversation
  ON plan_numbers(conversation_id)
;;
CREATE TABLE plans (
  id TEXT PRIMARY KEY,
  number BIGINT NOT NULL REFERENCES plan_numbers(number) ON DELETE CASCADE,
  version BIGINT NOT NULL CHECK (version > 0),
  conversation_id TEXT NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  session_id TEXT REFERENCES remote_agent_sessions(id) ON DELETE SET NULL,
  event_id TEXT REFERENCES inbound_events(id) ON DELETE SET NULL,
  goal TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL,
  sha256 TEXT CHECK (length(sha256) <= 64) NOT NULL CHECK (length(sha256) = 64),
  author TEXT CHECK (length(author) <= 300) NOT NULL DEFAULT '',
  requester TEXT CHECK (length(requester) <= 300) NOT NULL DEFAULT '',
  state TEXT NOT NULL DEFAULT 'proposed'
    CHECK (state IN ('proposed', 'approved', 'rejected', 'expired', 'superseded', 'executing', 'done')),
  head TEXT CHECK (length(head) <= 64) NOT NULL DEFAULT '',
  delivery_id TEXT CHECK (length(delivery_id) <= 64) NOT NULL DEFAULT '',
  decided_by TEXT CHECK (length(decided_by) <= 300) NOT NULL DEFAULT '',
  decided_ms BIGINT NOT NULL DEFAULT 0,
  note TEXT NOT NULL DEFAULT '',
  created_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL,
  UNIQUE (number, version)
)
;;
CREATE UNIQUE INDEX idx_plans_one_open
  ON plans(conversation_id) WHERE state IN ('proposed', 'approved')
;;
CREATE INDEX idx_plans_conversation
  ON plans(conversation_id, number)
;;
CREATE INDEX idx_plans_session
  ON plans(session_id)
;;
CREATE INDEX idx_plans_event
  ON plans(event_id)
;;
CREATE TABLE buttons (
  id TEXT CHECK (length(id) <= 40) PRIMARY KEY,
  conversation_id TEXT NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  decision TEXT NOT NULL,
  plan_number BIGINT NOT NULL DEFAULT 0,
  sha256 TEXT CHECK (length(sha256) <= 64) NOT NULL DEFAULT '',
  expires_ms BIGINT NOT NULL
)
;;
CREATE INDEX idx_buttons_conversation
  ON buttons(conversation_id)
;;
CREATE TRIGGER plans_text_locked
  BEFORE UPDATE ON plans
  FOR EACH ROW WHEN
    (OLD.id, OLD.number, OLD.version, OLD.conversation_id, OLD.goal, OLD.body, OLD.sha256, OLD.author, OLD.requester, OLD.created_ms)
    IS NOT
    (NEW.id, NEW.number, NEW.version, NEW.conversation_id, NEW.goal, NEW.body, NEW.sha256, NEW.author, NEW.requester, NEW.created_ms)
BEGIN
  SELECT RAISE(ABORT, 'a version of a plan does not change');
END
;;
CREATE TRIGGER plans_settled_once
  BEFORE UPDATE ON plans
  FOR EACH ROW WHEN
    OLD.state IN ('rejected', 'expired', 'superseded', 'done') AND OLD.state IS NOT NEW.state
BEGIN
  SELECT RAISE(ABORT, 'a plan is settled once');
END
;;
CREATE TABLE approvals (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id TEXT NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  session_id TEXT REFERENCES remote_agent_sessions(id) ON DELETE SET NULL,
  event_id TEXT REFERENCES inbound_events(id) ON DELETE SET NULL,
  codebase_id TEXT REFERENCES remote_agent_codebases(id) ON DELETE SET NULL,
  tool_call_id TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  request TEXT NOT NULL,
  sha256 TEXT CHECK (length(sha256) <= 64) NOT NULL CHECK (length(sha256) = 64),
  kind TEXT NOT NULL,
  title TEXT NOT NULL,
  detail TEXT NOT NULL DEFAULT '',
  rule TEXT NOT NULL DEFAULT '',
  requester TEXT CHECK (length(requester) <= 300) NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting'
    CHECK (state IN ('waiting', 'allowed', 'denied', 'expired', 'canceled')),
  delivery_id TEXT CHECK (length(delivery_id) <= 64) NOT NULL DEFAULT '',
  decided_by TEXT CHECK (length(decided_by) <= 300) NOT NULL DEFAULT '',
  decided_ms BIGINT NOT NULL DEFAULT 0,
  note TEXT NOT NULL DEFAULT '',
  created_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL
)
;;
CREATE INDEX idx_approvals_event
  ON approvals(event_id, tool_call_id)
;;
CREATE INDEX idx_approvals_waiting
  ON approvals(conversation_id, number) WHERE state = 'waiting'
;;
CREATE INDEX idx_approvals_conversation
  ON approvals(conversation_id)
;;
CREATE INDEX idx_approvals_session
  ON approvals(session_id)
;;
CREATE INDEX idx_approvals_codebase
  ON approvals(codebase_id)
;;
CREATE TABLE allow_rules (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  codebase_id TEXT NOT NULL REFERENCES remote_agent_codebases(id) ON DELETE CASCADE,
  tool_name TEXT NOT NULL,
  rule TEXT NOT NULL,
  created_by TEXT CHECK (length(created_by) <= 300) NOT NULL,
  created_ms BIGINT NOT NULL,
  UNIQUE (codebase_id, tool_name, rule)
)
;;
CREATE TABLE usage_records (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  event_id TEXT,
  conversation_id TEXT REFERENCES remote_agent_conversations(id) ON DELETE SET NULL,
  session_id TEXT,
  codebase_id TEXT REFERENCES remote_agent_codebases(id) ON DELETE SET NULL,
  actor TEXT CHECK (length(actor) <= 300) NOT NULL,
  ai_assistant_type TEXT CHECK (length(ai_assistant_type) <= 20) NOT NULL,
  model TEXT NOT NULL DEFAULT '',
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  cached_tokens BIGINT NOT NULL DEFAULT 0,
  written_tokens BIGINT NOT NULL DEFAULT 0,
  -- NULL where the model's price is not known.
  cost_micros BIGINT,
  at_ms BIGINT NOT NULL
)
;;
CREATE INDEX idx_usage_records_actor
  ON usage_records(actor, at_ms)
;;
CREATE INDEX idx_usage_records_at
  ON usage_records(at_ms)
;;
CREATE INDEX idx_usage_records_conversation
  ON usage_records(conversation_id, at_ms)
;;
CREATE TABLE models_config (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  fast TEXT CHECK (json_valid(fast)) NOT NULL DEFAULT '{}',
  smart TEXT CHECK (json_valid(smart)) NOT NULL DEFAULT '{}',
  cheap TEXT CHECK (json_valid(cheap)) NOT NULL DEFAULT '{}'
)
;;
CREATE TABLE platform_cursors (
  name TEXT CHECK (length(name) <= 255) PRIMARY KEY,
  position TEXT CHECK (length(position) <= 255) NOT NULL,
  updated_ms BIGINT NOT NULL
)
;;
CREATE TRIGGER approvals_request_locked
  BEFORE UPDATE ON approvals
  FOR EACH ROW WHEN
    (OLD.number, OLD.conversation_id, OLD.tool_call_id, OLD.tool_name, OLD.request, OLD.sha256, OLD.kind, OLD.title, OLD.detail, OLD.rule, OLD.requester, OLD.created_ms, OLD.expires_ms)
    IS NOT
    (NEW.number, NEW.conversation_id, NEW.tool_call_id, NEW.tool_name, NEW.request, NEW.sha256, NEW.kind, NEW.title, NEW.detail, NEW.rule, NEW.requester, NEW.created_ms, NEW.expires_ms)
BEGIN
  SELECT RAISE(ABORT, 'what an approval is about does not change');
END
;;
CREATE TRIGGER approvals_settled_once
  BEFORE UPDATE ON approvals
  FOR EACH ROW WHEN OLD.state <> 'waiting' AND OLD.state IS NOT NEW.state
BEGIN
  SELECT RAISE(ABORT, 'an approval is settled once');
END
;;
CREATE TABLE memory_people (
  user_id TEXT CHECK (length(user_id) <= 300) PRIMARY KEY,
  enabled BOOLEAN NOT NULL DEFAULT true,
  -- The last number given out. Numbers are not used again.
  seq BIGINT NOT NULL DEFAULT 0
, embeddings_version INTEGER NOT NULL DEFAULT 0)
;;
CREATE TABLE episodic_memories (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id TEXT CHECK (length(user_id) <= 300) NOT NULL REFERENCES memory_people(user_id) ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  content TEXT NOT NULL,
  embedding BLOB,
  sources TEXT CHECK (json_valid(sources)) NOT NULL DEFAULT '[]',
  access_count BIGINT NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  confidence FLOAT NOT NULL DEFAULT 1.0 CHECK (confidence >= 0 AND confidence <= 10),
  expires_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '+30 days')),
  -- The number that people use, and where the memory holds: NULL is everywhere.
  seq BIGINT NOT NULL,
  codebase_id TEXT REFERENCES remote_agent_codebases(id) ON DELETE CASCADE,
  origin TEXT CHECK (length(origin) <= 20) NOT NULL DEFAULT 'assistant'
    CHECK (origin IN ('person', 'assistant', 'learned')),
  content_hash TEXT CHECK (length(content_hash) <= 64) NOT NULL,
  terms TEXT NOT NULL DEFAULT '',
  embedding_model TEXT CHECK (length(embedding_model) <= 200) NOT NULL DEFAULT '',
  last_key TEXT CHECK (length(last_key) <= 200) NOT NULL DEFAULT '', embedding_version INTEGER NOT NULL DEFAULT 0, nearness BIGINT CHECK (nearness >= 0 AND nearness <= 1000),
  CHECK (embedding IS NULL OR length(embedding) = 1536),
  UNIQUE (user_id, seq)
)
;;
CREATE INDEX episodic_time_idx
  ON episodic_memories(user_id, created_at DESC)
;;
CREATE INDEX idx_episodic_memories_expires
  ON episodic_memories(expires_at)
;;
CREATE INDEX idx_episodic_memories_codebase
  ON episodic_memories(codebase_id)
;;
CREATE INDEX idx_episodic_memories_bare
  ON episodic_memories(embedding_model, id)
;;
CREATE TABLE semantic_memories (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id TEXT CHECK (length(user_id) <= 300) NOT NULL REFERENCES memory_people(user_id) ON DELETE CASCADE,
  run_id TEXT NOT NULL,
  fact TEXT NOT NULL,
  embedding BLOB,
  confidence FLOAT NOT NULL DEFAULT 0.5 CHECK (confidence >= 0 AND confidence <= 0.99),
  access_count BIGINT NOT NULL DEFAULT 1,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  category TEXT CHECK (length(category) <= 50)
    CHECK (category IN ('preference', 'fact', 'skill', 'relationship')),
  source_events TEXT CHECK (json_valid(source_events)) NOT NULL DEFAULT '[]',
  -- As in episodic_memories; history is what the fact said before.
  seq BIGINT NOT NULL,
  codebase_id TEXT REFERENCES remote_agent_codebases(id) ON DELETE CASCADE,
  origin TEXT CHECK (length(origin) <= 20) NOT NULL DEFAULT 'assistant'
    CHECK (origin IN ('person', 'assistant', 'learned')),
  content_hash TEXT CHECK (length(content_hash) <= 64) NOT NULL,
  terms TEXT NOT NULL DEFAULT '',
  embedding_model TEXT CHECK (length(embedding_model) <= 200) NOT NULL DEFAULT '',
  last_key TEXT CHECK (length(last_key) <= 200) NOT NULL DEFAULT '',
  history TEXT CHECK (json_valid(history)) NOT NULL DEFAULT '[]', embedding_version INTEGER NOT NULL DEFAULT 0, nearness BIGINT CHECK (nearness >= 0 AND nearness <= 1000),
  CHECK (embedding IS NULL OR length(embedding) = 1536),
  UNIQUE (user_id, seq)
)
;;
CREATE INDEX semantic_category_idx
  ON semantic_memories(user_id, category)
;;
CREATE INDEX idx_semantic_memories_codebase
  ON semantic_memories(codebase_id)
;;
CREATE INDEX idx_semantic_memories_bare
  ON semantic_memories(embedding_model, id)
;;
CREATE UNIQUE INDEX idx_semantic_memories_same
  ON semantic_memories(user_id, COALESCE(CAST(codebase_id AS TEXT), ''), content_hash)
;;
CREATE VIRTUAL TABLE episodic_words USING fts5(terms, content='episodic_memories', content_rowid='id', tokenize='unicode61')
;;
CREATE TRIGGER episodic_words_added AFTER INSERT ON episodic_memories BEGIN
  INSERT INTO episodic_words(rowid, terms) VALUES (NEW.id, NEW.terms);
END
;;
CREATE TRIGGER episodic_words_removed AFTER DELETE ON episodic_memories BEGIN
  INSERT INTO episodic_words(episodic_words, rowid, terms) VALUES ('delete', OLD.id, OLD.terms);
END
;;
CREATE TRIGGER episodic_words_changed AFTER UPDATE OF terms ON episodic_memories BEGIN
  INSERT INTO episodic_words(episodic_words, rowid, terms) VALUES ('delete', OLD.id, OLD.terms);
  INSERT INTO episodic_words(rowid, terms) VALUES (NEW.id, NEW.terms);
END
;;
CREATE VIRTUAL TABLE semantic_words USING fts5(terms, content='semantic_memories', content_rowid='id', tokenize='unicode61')
;;
CREATE TRIGGER semantic_words_added AFTER INSERT ON semantic_memories BEGIN
  INSERT INTO semantic_words(rowid, terms) VALUES (NEW.id, NEW.terms);
END
;;
CREATE TRIGGER semantic_words_removed AFTER DELETE ON semantic_memories BEGIN
  INSERT INTO semantic_words(semantic_words, rowid, terms) VALUES ('delete', OLD.id, OLD.terms);
END
;;
CREATE TRIGGER semantic_words_changed AFTER UPDATE OF terms ON semantic_memories BEGIN
  INSERT INTO semantic_words(semantic_words, rowid, terms) VALUES ('delete', OLD.id, OLD.terms);
  INSERT INTO semantic_words(rowid, terms) VALUES (NEW.id, NEW.terms);
END
;;
CREATE INDEX idx_remote_agent_sessions_started
  ON remote_agent_sessions(started_at, id)
;;
CREATE TABLE agents (
  id TEXT PRIMARY KEY DEFAULT (lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))),
  name TEXT NOT NULL CHECK (length(name) <= 63),
  "group" TEXT NOT NULL DEFAULT 'default_group' CHECK (length("group") <= 63),
  description TEXT NOT NULL DEFAULT '',
  lore TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(lore)),
  objectives TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(objectives)),
  knowledge TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(knowledge)),
  system_prompt TEXT NOT NULL DEFAULT '',
  "interval" BIGINT NOT NULL DEFAULT 0 CHECK ("interval" >= 0),
  plugins TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(plugins)),
  memory TEXT NOT NULL DEFAULT '{"enabled":true,"short_term_memory_size":0,"memory_size":0}' CHECK (json_valid(memory)),
  rag TEXT NOT NULL DEFAULT '{"enabled":true,"embedding_model":""}' CHECK (json_valid(rag)),
  mode TEXT NOT NULL DEFAULT 'interactive' CHECK (length(mode) <= 50),
  max_iterations BIGINT NOT NULL DEFAULT 15 CHECK (max_iterations > 0),
  mcp_servers TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(mcp_servers)),
  avatar_image BLOB,
  avatar_mime_type TEXT NOT NULL DEFAULT '' CHECK (length(avatar_mime_type) <= 50),
  -- One of them at most: a tier of models_config, or the name of a model.
  model_tier TEXT NOT NULL DEFAULT '' CHECK (length(model_tier) <= 20),
  model TEXT NOT NULL DEFAULT '' CHECK (length(model) <= 100),
  version BIGINT NOT NULL DEFAULT 1,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  UNIQUE ("group", name)
)
;;
CREATE INDEX idx_agents_name
  ON agents(name)
;;
CREATE INDEX idx_remote_agent_conversations_agent
  ON remote_agent_conversations(agent_id) WHERE agent_id IS NOT NULL
;;
CREATE INDEX idx_remote_agent_sessions_agent
  ON remote_agent_sessions(agent_id) WHERE agent_id IS NOT NULL
;;
CREATE TABLE agent_schedules (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  agent_id TEXT NOT NULL REFERENCES agents(id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL UNIQUE REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  created_by TEXT NOT NULL CHECK (length(created_by) <= 300),
  origin TEXT NOT NULL,
  event_id TEXT REFERENCES inbound_events(id) ON DELETE SET NULL,
  runs BIGINT NOT NULL DEFAULT 0,
  last_ms BIGINT NOT NULL DEFAULT 0,
  next_ms BIGINT NOT NULL,
  created_ms BIGINT NOT NULL
)
;;
CREATE INDEX idx_agent_schedules_agent
  ON agent_schedules(agent_id)
;;
CREATE INDEX idx_agent_schedules_next
  ON agent_schedules(next_ms)
;;
CREATE INDEX idx_agent_schedules_event
  ON agent_schedules(event_id)
;;
CREATE VIEW agent_iterations AS
SELECT
  u.id,
  json_object('agent_id', s.agent_id, 'session_id', u.session_id, 'run_id', u.event_id, 'actor', u.actor, 'model', u.model,
    'input_tokens', u.input_tokens, 'output_tokens', u.output_tokens, 'cost_micros', u.cost_micros) AS data,
  strftime('%Y-%m-%dT%H:%M:%fZ', u.at_ms / 1000.0, 'unixepoch') AS created_at
FROM usage_records u
JOIN remote_agent_sessions s ON s.id = u.session_id
WHERE s.agent_id IS NOT NULL
;;
CREATE VIEW thread_id AS
SELECT
  id,
  agent_id,
  platform_type || '/' || platform_conversation_id AS name,
  id AS thread_id,
  created_at
FROM remote_agent_conversations
WHERE agent_id IS NOT NULL
;;
CREATE TABLE memory_accounts (
  account TEXT CHECK (length(account) <= 300) PRIMARY KEY,
  user_id TEXT CHECK (length(user_id) <= 300) NOT NULL REFERENCES memory_people(user_id) ON DELETE CASCADE,
  -- Where the account was linked, so that it can be told what becomes of it.
  conversation_id TEXT REFERENCES remote_agent_conversations(id) ON DELETE SET NULL,
  whispered BOOLEAN NOT NULL DEFAULT false,
  -- The message that linked it, which may be handled twice.
  last_key TEXT CHECK (length(last_key) <= 200) NOT NULL DEFAULT '',
  linked_ms BIGINT NOT NULL
)
;;
CREATE INDEX idx_memory_accounts_person
  ON memory_accounts(user_id)
;;
CREATE INDEX idx_memory_accounts_conversation
  ON memory_accounts(conversation_id)
;;
CREATE TABLE link_codes (
  account TEXT CHECK (length(account) <= 300) PRIMARY KEY,
  code_hash TEXT CHECK (length(code_hash) <= 64) NOT NULL UNIQUE,
  conversation_id TEXT REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  whispered BOOLEAN NOT NULL DEFAULT false,
  expires_ms BIGINT NOT NULL
)
;;
CREATE INDEX idx_link_codes_conversation
  ON link_codes(conversation_id)
;;
CREATE TABLE link_tries (
  account TEXT CHECK (length(account) <= 300) PRIMARY KEY,
  tries BIGINT NOT NULL,
  since_ms BIGINT NOT NULL,
  last_key TEXT CHECK (length(last_key) <= 200) NOT NULL DEFAULT ''
)
;;
CREATE TABLE memory_lessons (
  entry_id TEXT PRIMARY KEY REFERENCES inbound_events(id) ON DELETE CASCADE,
  account TEXT CHECK (length(account) <= 300) NOT NULL,
  conversation_id TEXT NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  attempts BIGINT NOT NULL DEFAULT 0,
  next_ms BIGINT NOT NULL,
  claim TEXT CHECK (length(claim) <= 64) NOT NULL DEFAULT ''
)
;;
CREATE INDEX idx_memory_lessons_due
  ON memory_lessons(next_ms)
;;
CREATE INDEX idx_memory_lessons_account
  ON memory_lessons(account, conversation_id)
;;
CREATE INDEX idx_memory_lessons_conversation
  ON memory_lessons(conversation_id)
;;
CREATE INDEX idx_memory_lessons_claim
  ON memory_lessons(claim)
;;
CREATE INDEX idx_episodic_memories_same ON episodic_memories(user_id, content_hash)
;;
CREATE INDEX idx_semantic_memories_wordless ON semantic_memories(id) WHERE terms = ''
;;
CREATE INDEX idx_episodic_memories_wordless ON episodic_memories(id) WHERE terms = ''
;;
CREATE TABLE api_keys (
  id TEXT CHECK (length(id) <= 16) PRIMARY KEY,
  name TEXT CHECK (length(name) <= 64) NOT NULL,
  secret_hash TEXT CHECK (length(secret_hash) <= 64) NOT NULL CHECK (length(secret_hash) = 64),
  scopes TEXT CHECK (length(scopes) <= 500) NOT NULL,
  created_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL DEFAULT 0,
  revoked_ms BIGINT NOT NULL DEFAULT 0,
  last_used_ms BIGINT NOT NULL DEFAULT 0
)
;;
CREATE UNIQUE INDEX idx_api_keys_name
  ON api_keys(name) WHERE revoked_ms = 0
;;
CREATE INDEX idx_remote_agent_sessions_agent_started
  ON remote_agent_sessions(agent_name, started_at, id)
;;
CREATE TABLE service_state (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  access_seq BIGINT NOT NULL DEFAULT 0,
  halted_ms BIGINT NOT NULL DEFAULT 0,
  halted_by TEXT NOT NULL DEFAULT '',
  halt_reason TEXT NOT NULL DEFAULT ''
)
;;
CREATE UNIQUE INDEX idx_audit_log_seq ON audit_log(seq)
;;
CREATE UNIQUE INDEX idx_audit_log_effect ON audit_log(effect)
;;
CREATE TABLE audit_head (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  seq BIGINT NOT NULL DEFAULT 0,
  hash TEXT NOT NULL DEFAULT ''
)
;;
CREATE INDEX idx_inbound_events_person
  ON inbound_events(platform_type, sender) WHERE lane = 'turn' AND state = 'waiting'
;;
CREATE INDEX idx_inbound_events_refused
  ON inbound_events(platform_type, sender, accepted_ms) WHERE state = 'refused' AND error = 'overflow'
;;
CREATE INDEX idx_inbound_events_commands
  ON inbound_events(platform_type, sender) WHERE lane = 'control'
;;
CREATE INDEX idx_semantic_memories_model ON semantic_memories(user_id, embedding_model, embedding_version)
;;
CREATE INDEX idx_episodic_memories_model ON episodic_memories(user_id, embedding_model, embedding_version)
;;
CREATE TRIGGER memory_people_begin AFTER INSERT ON memory_people
BEGIN
  UPDATE memory_people SET embeddings_version = abs(random() >> 16) WHERE user_id = NEW.user_id;
END
;;
CREATE TRIGGER semantic_embedding_added AFTER INSERT ON semantic_memories WHEN NEW.embedding_model <> ''
BEGIN
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = NEW.user_id;
  UPDATE semantic_memories SET embedding_version = COALESCE((SELECT embeddings_version FROM memory_people WHERE user_id = NEW.user_id), 0)
  WHERE id = NEW.id;
END
;;
CREATE TRIGGER semantic_embedding_changed AFTER UPDATE OF embedding, embedding_model, user_id, codebase_id ON semantic_memories
WHEN OLD.embedding IS NOT NEW.embedding OR OLD.embedding_model <> NEW.embedding_model
  OR OLD.user_id <> NEW.user_id OR OLD.codebase_id IS NOT NEW.codebase_id
BEGIN
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = OLD.user_id AND user_id <> NEW.user_id;
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = NEW.user_id;
  UPDATE semantic_memories SET embedding_version = COALESCE((SELECT embeddings_version FROM memory_people WHERE user_id = NEW.user_id), 0)
  WHERE id = NEW.id;
END
;;
CREATE TRIGGER semantic_embedding_removed AFTER DELETE ON semantic_memories WHEN OLD.embedding_model <> ''
BEGIN
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = OLD.user_id;
END
;;
CREATE TRIGGER episodic_embedding_added AFTER INSERT ON episodic_memories WHEN NEW.embedding_model <> ''
BEGIN
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = NEW.user_id;
  UPDATE episodic_memories SET embedding_version = COALESCE((SELECT embeddings_version FROM memory_people WHERE user_id = NEW.user_id), 0)
  WHERE id = NEW.id;
END
;;
CREATE TRIGGER episodic_embedding_changed AFTER UPDATE OF embedding, embedding_model, user_id, codebase_id, expires_at ON episodic_memories
WHEN OLD.embedding IS NOT NEW.embedding OR OLD.embedding_model <> NEW.embedding_model
  OR OLD.user_id <> NEW.user_id OR OLD.codebase_id IS NOT NEW.codebase_id
  OR OLD.expires_at <> NEW.expires_at
BEGIN
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = OLD.user_id AND user_id <> NEW.user_id;
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = NEW.user_id;
  UPDATE episodic_memories SET embedding_version = COALESCE((SELECT embeddings_version FROM memory_people WHERE user_id = NEW.user_id), 0)
  WHERE id = NEW.id;
END
;;
CREATE TRIGGER episodic_embedding_removed AFTER DELETE ON episodic_memories WHEN OLD.embedding_model <> ''
BEGIN
  UPDATE memory_people SET embeddings_version = embeddings_version + 1 WHERE user_id = OLD.user_id;
END
;;
CREATE INDEX idx_agent_messages_system
  ON agent_messages(session_id, seq) WHERE role = 'system'
;;
CREATE INDEX idx_remote_agent_codebases_repository
  ON remote_agent_codebases(repository_url) WHERE repository_url <> ''
;;
CREATE TABLE agent_runs (
  session_id TEXT NOT NULL REFERENCES remote_agent_sessions(id) ON DELETE CASCADE,
  number BIGINT NOT NULL,
  entry_id TEXT NOT NULL,
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
) WITHOUT ROWID
;;
CREATE INDEX idx_remote_agent_sessions_failed
  ON remote_agent_sessions(started_at, id) WHERE status = 'failed'
;;
CREATE INDEX idx_usage_records_codebase
  ON usage_records(codebase_id, at_ms) WHERE codebase_id IS NOT NULL
;;
CREATE TRIGGER usage_records_event_deleted AFTER DELETE ON inbound_events
  FOR EACH ROW WHEN OLD.conversation_id IS NOT NULL
BEGIN
  UPDATE usage_records SET event_id = NULL WHERE conversation_id = OLD.conversation_id AND event_id = OLD.id;
END
;;
CREATE TRIGGER usage_records_session_deleted AFTER DELETE ON remote_agent_sessions
BEGIN
  UPDATE usage_records SET session_id = NULL WHERE conversation_id = OLD.conversation_id AND session_id = OLD.id;
END
;;
CREATE TRIGGER usage_records_conversation_deleted BEFORE DELETE ON remote_agent_conversations
BEGIN
  UPDATE usage_records SET session_id = NULL WHERE conversation_id = OLD.id AND session_id IS NOT NULL;
END
;;
CREATE TABLE replicas (
  owner TEXT CHECK (length(owner) <= 255) PRIMARY KEY,
  lock_key BIGINT NOT NULL,
  until_ms BIGINT NOT NULL
, joined_us BIGINT NOT NULL DEFAULT 0)
;;
CREATE TABLE files (
  hash TEXT PRIMARY KEY,
  size BIGINT NOT NULL,
  data BLOB,
  -- When somebody attached it last, in Unix milliseconds.
  used_ms BIGINT NOT NULL,
  -- 1 when a message that had it was deleted: it goes unless another one has it.
  released BIGINT NOT NULL DEFAULT 0
)
;;
CREATE INDEX idx_files_released ON files(hash) WHERE released = 1
;;
CREATE INDEX idx_files_used ON files(used_ms)
;;
CREATE INDEX idx_agent_messages_file
  ON agent_messages(CASE WHEN json_valid(data_json) THEN json_extract(data_json, '$.file') END) WHERE kind = 'attachment'
;;
CREATE VIEW message_files AS
  SELECT id AS message_id, CASE WHEN json_valid(data_json) THEN json_extract(data_json, '$.file') END AS hash
  FROM agent_messages WHERE kind = 'attachment'
;;
CREATE TRIGGER agent_messages_release_file
  AFTER DELETE ON agent_messages
  FOR EACH ROW WHEN OLD.kind = 'attachment'
BEGIN
  UPDATE files SET released = 1
  WHERE hash = CASE WHEN json_valid(OLD.data_json) THEN json_extract(OLD.data_json, '$.file') END;
END
;;
CREATE TABLE call_limits (
  account TEXT NOT NULL,
  bucket TEXT NOT NULL,
  full_us BIGINT NOT NULL DEFAULT 0,
  silent_us BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (account, bucket)
)
;;
CREATE TABLE pairings (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  platform_type TEXT CHECK (length(platform_type) <= 20) NOT NULL,
  user_id TEXT CHECK (length(user_id) <= 255) NOT NULL,
  name TEXT NOT NULL DEFAULT '',
  platform_conversation_id TEXT CHECK (length(platform_conversation_id) <= 255) NOT NULL,
  code TEXT CHECK (length(code) <= 16) NOT NULL,
  state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'allowed', 'denied')),
  cards TEXT NOT NULL DEFAULT '',
  asked_ms BIGINT NOT NULL,
  decided_by TEXT CHECK (length(decided_by) <= 300) NOT NULL DEFAULT '',
  decided_ms BIGINT NOT NULL DEFAULT 0
)
;;
CREATE UNIQUE INDEX idx_pairings_person
  ON pairings(platform_type, user_id)
;;
CREATE UNIQUE INDEX idx_pairings_code
  ON pairings(code)
;;
CREATE TABLE sign_in_links (
  token_hash TEXT CHECK (length(token_hash) <= 64) PRIMARY KEY CHECK (length(token_hash) = 64),
  platform_type TEXT CHECK (length(platform_type) <= 20) NOT NULL,
  user_id TEXT CHECK (length(user_id) <= 255) NOT NULL,
  expires_ms BIGINT NOT NULL
)
;;
CREATE TABLE web_sessions (
  id TEXT CHECK (length(id) <= 16) PRIMARY KEY,
  token_hash TEXT CHECK (length(token_hash) <= 64) NOT NULL CHECK (length(token_hash) = 64),
  platform_type TEXT CHECK (length(platform_type) <= 20) NOT NULL,
  user_id TEXT CHECK (length(user_id) <= 255) NOT NULL,
  client TEXT CHECK (length(client) <= 200) NOT NULL DEFAULT '',
  created_ms BIGINT NOT NULL,
  last_used_ms BIGINT NOT NULL,
  expires_ms BIGINT NOT NULL,
  revoked_ms BIGINT NOT NULL DEFAULT 0
)
;;
CREATE UNIQUE INDEX idx_web_sessions_token
  ON web_sessions(token_hash)
;;
CREATE INDEX idx_inbound_events_failed
  ON inbound_events(id) WHERE lane = 'turn' AND state = 'failed'
;;
CREATE INDEX idx_deliveries_failed
  ON deliveries(id) WHERE state = 'failed'
;;
CREATE TABLE web_chats (
  id TEXT PRIMARY KEY,
  account TEXT NOT NULL,
  last_seq BIGINT NOT NULL DEFAULT 0,
  changed_ms BIGINT NOT NULL
)
;;
CREATE INDEX idx_web_chats_account
  ON web_chats(account, changed_ms)
;;
CREATE TABLE web_messages (
  id TEXT PRIMARY KEY,
  chat_id TEXT NOT NULL REFERENCES web_chats(id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  delivery_id TEXT,
  author TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL,
  buttons TEXT NOT NULL DEFAULT '[]',
  mark TEXT NOT NULL DEFAULT '',
  event TEXT,
  created_ms BIGINT NOT NULL
)
;;
CREATE UNIQUE INDEX idx_web_messages_place
  ON web_messages(chat_id, seq)
;;
CREATE UNIQUE INDEX idx_web_messages_delivery
  ON web_messages(delivery_id) WHERE delivery_id IS NOT NULL
;;
CREATE INDEX idx_web_messages_event
  ON web_messages(chat_id, seq) WHERE event IS NOT NULL
;;
CREATE TABLE web_files (
  id TEXT PRIMARY KEY,
  message_id TEXT NOT NULL REFERENCES web_messages(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  media_type TEXT NOT NULL,
  size BIGINT NOT NULL,
  data BLOB NOT NULL
)
;;
CREATE INDEX idx_web_files_message
  ON web_files(message_id)
;;
CREATE TRIGGER deliveries_leave_web
  AFTER DELETE ON deliveries
  FOR EACH ROW
BEGIN
  DELETE FROM web_messages WHERE delivery_id = OLD.id;
END
;;
CREATE TRIGGER deliveries_emptied_on_web
  AFTER UPDATE OF body ON deliveries
  FOR EACH ROW WHEN NEW.body = '' AND OLD.body <> ''
BEGIN
  DELETE FROM web_messages WHERE delivery_id = OLD.id;
END
;;
CREATE INDEX idx_inbound_events_sender
  ON inbound_events(sender, platform_type, conversation_id) WHERE seq > 0
;;
CREATE INDEX idx_remote_agent_sessions_assistant
  ON remote_agent_sessions(ai_assistant_type, started_at, id)
;;
CREATE INDEX idx_remote_agent_sessions_repository
  ON remote_agent_sessions(codebase_id, started_at, id)
;;
CREATE TRIGGER inbound_events_leave_web
  AFTER UPDATE OF data ON inbound_events
  FOR EACH ROW WHEN NEW.data IS NULL AND OLD.data IS NOT NULL AND OLD.platform_type = 'web'
BEGIN
  DELETE FROM web_messages WHERE id = OLD.message_id AND delivery_id IS NULL;
END
;;
CREATE TABLE usage_days (
  day INTEGER PRIMARY KEY,
  format INTEGER NOT NULL,
  body BLOB NOT NULL
)
;;
CREATE TABLE usage_spread (
  event_id TEXT PRIMARY KEY
) WITHOUT ROWID
;;
CREATE TRIGGER usage_days_added AFTER INSERT ON usage_records
BEGIN
  DELETE FROM usage_days WHERE day = NEW.at_ms / 86400000;
END
;;
CREATE TRIGGER usage_days_added_late AFTER INSERT ON usage_records
WHEN NEW.event_id IS NOT NULL
  AND NEW.at_ms / 86400000 IS NOT (SELECT e.accepted_ms / 86400000 FROM inbound_events e WHERE e.id = NEW.event_id)
BEGIN
  INSERT INTO usage_spread (event_id) VALUES (NEW.event_id) ON CONFLICT (event_id) DO NOTHING;
  DELETE FROM usage_days WHERE day = (SELECT e.accepted_ms / 86400000 FROM inbound_events e WHERE e.id = NEW.event_id);
END
;;
CREATE TRIGGER usage_days_changed
  AFTER UPDATE OF event_id, conversation_id, codebase_id, actor, ai_assistant_type, model, input_tokens, output_tokens, cost_micros, at_ms ON usage_records
BEGIN
  DELETE FROM usage_days WHERE day IN (OLD.at_ms / 86400000, NEW.at_ms / 86400000);
END
;;
CREATE TRIGGER usage_days_changed_late AFTER UPDATE OF event_id, at_ms ON usage_records
WHEN NEW.event_id IS NOT NULL
  AND NEW.at_ms / 86400000 IS NOT (SELECT e.accepted_ms / 86400000 FROM inbound_events e WHERE e.id = NEW.event_id)
BEGIN
  INSERT INTO usage_spread (event_id) VALUES (NEW.event_id) ON CONFLICT (event_id) DO NOTHING;
  DELETE FROM usage_days WHERE day = (SELECT e.accepted_ms / 86400000 FROM inbound_events e WHERE e.id = NEW.event_id);
END
;;
CREATE TRIGGER usage_days_removed AFTER DELETE ON usage_records
BEGIN
  DELETE FROM usage_days WHERE day = OLD.at_ms / 86400000;
  DELETE FROM usage_spread WHERE event_id = OLD.event_id AND NOT EXISTS (SELECT 1 FROM usage_records u WHERE u.event_id = OLD.event_id);
END
;;
CREATE TRIGGER usage_days_left AFTER UPDATE OF event_id ON usage_records WHEN OLD.event_id IS NOT NULL
BEGIN
  DELETE FROM usage_spread WHERE event_id = OLD.event_id AND NOT EXISTS (SELECT 1 FROM usage_records u WHERE u.event_id = OLD.event_id);
END
;;
CREATE TRIGGER usage_days_event_deleted AFTER DELETE ON inbound_events
WHEN EXISTS (SELECT 1 FROM usage_records u WHERE u.event_id = OLD.id)
BEGIN
  INSERT INTO usage_spread (event_id) VALUES (OLD.id) ON CONFLICT (event_id) DO NOTHING;
  DELETE FROM usage_days WHERE day = OLD.accepted_ms / 86400000;
END
;;
CREATE TABLE usage_day_parts (
  day BIGINT NOT NULL REFERENCES usage_days(day) ON DELETE CASCADE,
  part TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (day, part)
)
;;
CREATE INDEX idx_inbound_events_kept
  ON inbound_events(accepted_ms) WHERE raw IS NOT NULL OR data IS NOT NULL OR checkpoint_seq IS NOT NULL
;;
CREATE VIEW message AS
SELECT
  m.id,
  s.agent_id,
  m.kind AS event,
  m.run_id,
  s.conversation_id AS thread_id,
  (SELECT e.id FROM inbound_events e
    WHERE e.conversation_id = s.conversation_id AND e.seq > 0 AND e.session_id = m.session_id AND e.checkpoint_seq <= m.seq
    ORDER BY e.seq DESC LIMIT 1) AS checkpoint_id,
  m.role AS "from",
  m.content,
  CASE WHEN m.kind IN ('tool_call', 'tool_result') THEN m.data_json END AS tools,
  (SELECT json_object('number', p.number, 'version', p.version, 'state', p.state, 'goal', p.goal) FROM plans p
    WHERE p.session_id = m.session_id AND p.event_id = m.run_id ORDER BY p.number DESC, p.version DESC LIMIT 1) AS plan,
  m.provider_metadata AS metadata,
  strftime('%Y-%m-%dT%H:%M:%fZ', m.created_at, 'unixepoch') AS "timestamp"
FROM agent_messages m
JOIN remote_agent_sessions s ON s.id = m.session_id
;;
CREATE TRIGGER agent_messages_fts_insert
  AFTER INSERT ON agent_messages
  FOR EACH ROW WHEN NEW.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')
    AND NEW.id < (SELECT max(d.id) FROM agent_messages_fts_docsize d)
BEGIN
  INSERT INTO agent_messages_fts(rowid, body) SELECT s.id, s.body FROM agent_messages_searchable s WHERE s.id = NEW.id;
END
;;
CREATE TRIGGER agent_messages_fts_delete
  BEFORE DELETE ON agent_messages
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM agent_messages_fts_docsize d WHERE d.id = OLD.id)
BEGIN
  INSERT INTO agent_messages_fts(agent_messages_fts, rowid, body)
    SELECT 'delete', s.id, s.body FROM agent_messages_searchable s WHERE s.id = OLD.id;
END
;;
CREATE TRIGGER agent_messages_fts_update_old
  BEFORE UPDATE OF id, kind, content ON agent_messages
  FOR EACH ROW WHEN EXISTS (SELECT 1 FROM agent_messages_fts_docsize d WHERE d.id = OLD.id)
BEGIN
  INSERT INTO agent_messages_fts(agent_messages_fts, rowid, body)
    SELECT 'delete', s.id, s.body FROM agent_messages_searchable s WHERE s.id = OLD.id;
END
;;
CREATE TRIGGER agent_messages_fts_update_new
  AFTER UPDATE OF id, kind, content ON agent_messages
  FOR EACH ROW WHEN NEW.id < (SELECT max(d.id) FROM agent_messages_fts_docsize d)
BEGIN
  INSERT INTO agent_messages_fts(rowid, body) SELECT s.id, s.body FROM agent_messages_searchable s WHERE s.id = NEW.id;
END
;;
CREATE VIRTUAL TABLE agent_messages_fts USING fts5(
  body, content = 'agent_messages_searchable', content_rowid = 'id', tokenize = 'unicode61 remove_diacritics 2')
;;
CREATE VIEW agent_messages_searchable AS
WITH
  spread AS (
    SELECT m.id,
    CASE WHEN m.content NOT GLOB '*' || l.class || '*' THEN substr(m.content, 1, 100000) ELSE (
    WITH RECURSIVE
      parts(at, part) AS (
        SELECT 1, substr(m.content, 1, 101)
        UNION ALL SELECT at + 100, substr(m.content, at + 100, 101) FROM parts WHERE at + 100 <= min(length(m.content), 100000)),
      places(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM places WHERE i < 100)
    SELECT group_concat(CASE
        WHEN letter NOT GLOB l.class THEN letter
        WHEN next GLOB l.class THEN printf(' u%xx%x ', unicode(letter), unicode(next))
        ELSE printf(' u%xx ', unicode(letter)) END, '')
    FROM (
      SELECT substr(part, i, 1) AS letter, CASE WHEN at + i <= 100000 THEN substr(part, i + 1, 1) ELSE '' END AS next
      FROM parts CROSS JOIN places ORDER BY at, i)
    ) END AS body
    FROM agent_messages m CROSS JOIN (SELECT '[' || char(
      0x4E00, 45, 0x9FFF, 0x3041, 45, 0x30FA, 0x30FC, 45, 0x30FF, 0x0E01, 45, 0x0EFF, 0x1000, 45, 0x109F, 0x1780, 45, 0x17FF,
      0x3005, 45, 0x3007, 0x31F0, 45, 0x31FF, 0x3400, 45, 0x4DBF, 0xF900, 45, 0xFAFF, 0xFF66, 45, 0xFF9F, 0x20000, 45, 0x3FFFF) || ']' AS class) l
    WHERE m.kind NOT IN ('tool_call', 'tool_result', 'tool', 'thinking', 'system')),
  one AS (SELECT id, replace(replace(replace(replace(replace(replace(replace(body, 'ł', 'l'), 'Ł', 'l'), 'ø', 'o'), 'Ø', 'o'), 'ǿ', 'o'), 'Ǿ', 'o'), 'đ', 'd') AS body FROM spread),
  two AS (SELECT id, replace(replace(replace(replace(replace(replace(replace(body, 'Đ', 'd'), 'ð', 'd'), 'Ð', 'd'), 'ı', 'i'), 'ß', 'ss'), 'ẞ', 'ss'), 'æ', 'ae') AS body FROM one)
SELECT id, replace(replace(replace(replace(replace(replace(replace(body, 'Æ', 'ae'), 'ǽ', 'ae'), 'Ǽ', 'ae'), 'œ', 'oe'), 'Œ', 'oe'), 'þ', 'th'), 'Þ', 'th') AS body FROM two
;;
INSERT INTO episodic_words (episodic_words, rank) VALUES ('secure-delete', 1)
;;
INSERT INTO semantic_words (semantic_words, rank) VALUES ('secure-delete', 1)
;;
INSERT INTO agent_messages_fts (agent_messages_fts, rank) VALUES ('secure-delete', 1)
;;
INSERT INTO "service_state" ("id", "access_seq", "halted_ms", "halted_by", "halt_reason") VALUES (1, 0, 0, '', '')
;;
INSERT INTO "audit_head" ("id", "seq", "hash") VALUES (1, 0, '')
