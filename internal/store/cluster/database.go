package cluster

import (
	"context"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
)

// Create makes an empty database beside the one that a URL names, on the same server,
// and returns its URL. There must be none of that name.
func Create(ctx context.Context, databaseURL, name string) (string, error) {
	if err := Exec(ctx, databaseURL, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()+" TEMPLATE template0"); err != nil {
		return "", err
	}
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", fmt.Errorf("the address of the database is no URL: %w", err)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// Drop removes a database and ends all connections to it. URL names another one.
func Drop(ctx context.Context, databaseURL, name string) error {
	return Exec(ctx, databaseURL, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
}

// Terminate ends all connections to the database of a URL but its own, as a restart of
// the server does.
func Terminate(ctx context.Context, databaseURL string) error {
	return Exec(ctx, databaseURL, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
}

// Exec runs statements, each by itself, over a connection of their own.
func Exec(ctx context.Context, databaseURL string, statements ...string) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // what was asked has been answered
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}
