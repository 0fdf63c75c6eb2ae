-- 00029, works with binaries from 00001: a message's words are found faster
-- On PostgreSQL; SQLite has an index of its own kind.

-- +goose Up
