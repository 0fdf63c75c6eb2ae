-- 00003, works with binaries from 00001: inbound events, deliveries, named leases
-- Columns that end in _ms are Unix milliseconds.

-- +goose Up
-- Dedupe table and inbox in one: an event is stored once per platform account,
-- and seq is its place in the inbox of its conversation. The row outlives the
-- conversation, so that a redelivery of an old event stays a duplicate.
CREATE TABLE inbound_events (
  id UUID PRIMARY KEY,
  platform_type VARCHAR(20) NOT NULL,
  account VARCHAR(255) NOT NULL DEFAULT '',
  event_id VARCHAR(255) NOT NULL,
  conversation_id UUID REFERENCES remote_agent_conversations(id) ON DELETE SET NULL,
  seq BIGINT NOT NULL DEFAULT 0,
  lane TEXT NOT NULL DEFAULT 'turn' CHECK (lane IN ('turn', 'control')),
  state TEXT NOT NULL DEFAULT 'waiting'
    CHECK (state IN ('waiting', 'running', 'done', 'failed', 'stopped', 'refused', 'ignored', 'raw')),
  attempts BIGINT NOT NULL DEFAULT 0,
  next_ms BIGINT NOT NULL DEFAULT 0,
  session_id UUID,
  message_id VARCHAR(255) NOT NULL DEFAULT '',
  error TEXT,
  data TEXT,
  raw BYTEA,
  accepted_ms BIGINT NOT NULL,
  UNIQUE (platform_type, account, event_id)
);

CREATE UNIQUE INDEX idx_inbound_events_seq
  ON inbound_events(conversation_id, seq) WHERE seq > 0;

CREATE INDEX idx_inbound_events_open
  ON inbound_events(conversation_id, seq)
  WHERE lane = 'turn' AND state IN ('waiting', 'running');

CREATE INDEX idx_inbound_events_control
  ON inbound_events(accepted_ms)
  WHERE lane = 'control' AND state = 'waiting';

CREATE INDEX idx_inbound_events_message
  ON inbound_events(conversation_id, message_id) WHERE state = 'waiting';

CREATE TABLE deliveries (
  id VARCHAR(64) PRIMARY KEY,
  conversation_id UUID NOT NULL REFERENCES remote_agent_conversations(id) ON DELETE CASCADE,
  event_id UUID REFERENCES inbound_events(id) ON DELETE SET NULL,
  seq BIGINT NOT NULL,
  reply_to VARCHAR(255) NOT NULL DEFAULT '',
  placeholder TEXT NOT NULL DEFAULT '',
  body TEXT NOT NULL DEFAULT '',
  final BOOLEAN NOT NULL DEFAULT false,
  control BOOLEAN NOT NULL DEFAULT false,
  message_id VARCHAR(255) NOT NULL DEFAULT '',
  state TEXT NOT NULL DEFAULT 'pending'
    CHECK (state IN ('pending', 'sending', 'placed', 'sent', 'failed')),
  attempts BIGINT NOT NULL DEFAULT 0,
  next_ms BIGINT NOT NULL DEFAULT 0,
  error TEXT NOT NULL DEFAULT '',
  created_ms BIGINT NOT NULL,
  UNIQUE (conversation_id, seq)
);

CREATE INDEX idx_deliveries_open
  ON deliveries(conversation_id, seq)
  WHERE state IN ('pending', 'sending', 'placed');

CREATE INDEX idx_deliveries_event
  ON deliveries(event_id, seq);

CREATE TABLE named_leases (
  name VARCHAR(255) PRIMARY KEY,
  owner VARCHAR(255) NOT NULL,
  lease_until BIGINT NOT NULL
);
