-- 00033, works with binaries from 00001: limits on calls that replicas share

-- +goose Up
-- When a replica joined another one that had been alone until then (Unix microseconds),
-- and 0 if it did not: until shortly after that the other counts its calls by itself.
ALTER TABLE replicas ADD COLUMN joined_us BIGINT NOT NULL DEFAULT 0;

-- A limit of a platform that counts the calls of an account, from whichever replica they
-- come, or somebody whom a platform told to be silent. A bucket that holds a burst of calls
-- is full again at full_us, and calls are refused until silent_us (Unix microseconds by
-- the database's clock). What is lost in a crash costs at worst a refusal: so it is not
-- logged, and does not wait for a disk.
CREATE UNLOGGED TABLE call_limits (
  account VARCHAR(64) NOT NULL,
  bucket VARCHAR(255) NOT NULL,
  full_us BIGINT NOT NULL DEFAULT 0,
  silent_us BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (account, bucket)
) WITH (fillfactor = 50);
