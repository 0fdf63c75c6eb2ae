-- 00026, works with binaries from 00026: wake-ups are in memory
-- One process works on a SQLite database, and its sweep finds all work. So the jobs
-- that ring for it need no tables.

-- +goose Up
DROP TABLE IF EXISTS river_client_queue;
DROP TABLE IF EXISTS river_client;
DROP TABLE IF EXISTS river_job;
DROP TABLE IF EXISTS river_leader;
DROP TABLE IF EXISTS river_queue;
DROP TABLE IF EXISTS river_notification;
DROP TABLE IF EXISTS river_migration;
