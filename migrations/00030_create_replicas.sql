-- 00030, works with binaries from 00001: which processes live

-- +goose Up
-- A process that works on this database, on PostgreSQL. It lives while it holds the
-- advisory lock (lock_class, lock_key), where lock_key is not 0, and until until_ms
-- (Unix milliseconds), which it moves on every few seconds. When either is over, the
-- leases of owner, as in lease_owner, are void.
CREATE TABLE replicas (
  owner VARCHAR(255) PRIMARY KEY,
  lock_key BIGINT NOT NULL,
  until_ms BIGINT NOT NULL
);
