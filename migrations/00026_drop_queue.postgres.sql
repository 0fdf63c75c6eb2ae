-- 00026, works with binaries from 00001: wake-ups are in memory
-- On SQLite only; here several processes share the jobs.

-- +goose Up
SELECT 1;
