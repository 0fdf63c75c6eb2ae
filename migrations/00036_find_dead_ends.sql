-- 00036, works with binaries from 00001: turns that failed and answers that were given up, for the page of the queue

-- +goose Up
CREATE INDEX idx_inbound_events_failed
  ON inbound_events(id) WHERE lane = 'turn' AND state = 'failed';

CREATE INDEX idx_deliveries_failed
  ON deliveries(id) WHERE state = 'failed';
