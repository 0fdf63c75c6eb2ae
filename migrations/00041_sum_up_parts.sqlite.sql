-- 00041, works with binaries from 00001: sums of usage over years without reading all of each day

-- +goose Up
-- What of a summed up day answers a question by itself (spend.Part). It goes with its day.
CREATE TABLE usage_day_parts (
  day BIGINT NOT NULL REFERENCES usage_days(day) ON DELETE CASCADE,
  part TEXT NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (day, part)
);
