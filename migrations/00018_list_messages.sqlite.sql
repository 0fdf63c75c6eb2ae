-- 00018, works with binaries from 00001: messages of an agent and a thread, page by page
-- SQLite has no functions in its schema, so there is no get_messages_optimized to make
-- here: select from the view message, which both databases have, or ask the API or
-- `bot messages list`, which list in the same order.

-- +goose Up
