-- 00008, works with binaries from 00001: deliveries that are files

-- +goose Up
ALTER TABLE deliveries ADD COLUMN file_name VARCHAR(255) NOT NULL DEFAULT '';
ALTER TABLE deliveries ADD COLUMN file BYTEA;
