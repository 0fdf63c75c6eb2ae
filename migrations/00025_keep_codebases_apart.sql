-- 00025, works with binaries from 00001: several codebases may be of one repository
-- An import keeps codebases apart that another program had, each with its own
-- name, folder and assistant.

-- +goose Up
DROP INDEX idx_remote_agent_codebases_repository;

CREATE INDEX idx_remote_agent_codebases_repository
  ON remote_agent_codebases(repository_url) WHERE repository_url <> '';
