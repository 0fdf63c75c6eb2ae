package store_test

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"remote-agent/internal/fault"
	"remote-agent/internal/store"
)

// TestWhyPostgreSQLRefuses: who sets it up reads what to change, and never the password.
func TestWhyPostgreSQLRefuses(t *testing.T) {
	t.Parallel()
	says := func(code, message string) func(*testing.T, net.Conn) {
		return func(_ *testing.T, c net.Conn) {
			server := pgproto3.NewBackend(c, c)
			if _, err := server.ReceiveStartupMessage(); err != nil {
				return
			}
			server.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: code, Message: message})
			_ = server.Flush()
		}
	}
	// offers answers the wish for TLS with one byte.
	offers := func(answer string) func(*testing.T, net.Conn) {
		return func(t *testing.T, c net.Conn) {
			t.Helper()
			_, _ = io.ReadFull(c, make([]byte, 8))
			_, _ = io.WriteString(c, answer)
			if answer == "S" {
				other := httptest.NewTLSServer(nil)
				defer other.Close()
				_ = tls.Server(c, other.TLS).HandshakeContext(t.Context())
			}
		}
	}
	for name, tt := range map[string]struct {
		serve   func(*testing.T, net.Conn)
		options string
		want    string
	}{
		"password":    {says("28P01", "password authentication failed"), "", `it refuses the password of the user "ann"`},
		"user":        {says("28000", `role "ann" does not exist`), "", `it says "role \"ann\" does not exist" (28000); create the user "ann"`},
		"database":    {says("3D000", "x"), "", `it has no database "bots"; create it`},
		"permission":  {says("42501", "x"), "", "GRANT CONNECT allows it"},
		"full":        {says("53300", "x"), "", "raise max_connections"},
		"starting":    {says("57P03", "x"), "", "try again in a moment"},
		"other":       {says("58000", strings.Repeat("\x1b\n", 500)), "", `it says "\x1b\n\x1b\n`},
		"no TLS":      {offers("N"), "sslmode=require", "it has no TLS"},
		"certificate": {offers("S"), "sslmode=verify-full", "its certificate is not trusted"},
		"silence":     {func(_ *testing.T, c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "sslmode=disable&connect_timeout=1", "nothing answered on port"},
		"hung up":     {func(*testing.T, net.Conn) {}, "", "; check that it runs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for {
					c, err := listener.Accept()
					if err != nil {
						return
					}
					tt.serve(t, c)
					_ = c.Close()
				}
			}()
			options := cmp.Or(tt.options, "sslmode=disable")
			text := refused(t, fmt.Sprintf("postgres://ann:hidden@%s/bots?%s", listener.Addr(), options))
			_ = listener.Close()
			if want := "DATABASE_URL: PostgreSQL at 127.0.0.1 does not accept the connection"; !strings.HasPrefix(text, want) || !strings.Contains(text, tt.want) {
				t.Errorf("%s, want %s", text, tt.want)
			}
			if strings.Contains(text, "hidden") || len(text) > 1000 {
				t.Errorf("it says %s", text)
			}
		})
	}
	for address, want := range map[string]string{
		"postgres://ann@127.0.0.1:1/bots?sslmode=disable":         "nothing listens on port 1; start it",
		"postgres:///bots?user=ann&port=5433&host=" + t.TempDir(): "there is no socket for port 5433 in this folder",
	} {
		if text := refused(t, address); !strings.Contains(text, want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
	unknown := &net.DNSError{Err: "no such host", Name: "db.invalid", IsNotFound: true}
	if text := store.Refusal(&pgconn.Config{Host: "db.invalid"}, errors.Join(unknown)); text != "PostgreSQL at db.invalid does not accept the connection: there is no host of this name" {
		t.Error(text)
	}
}

// refused opens a database that does not accept the connection.
func refused(t *testing.T, address string) string {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: address})
	if err == nil {
		_ = s.Close()
		t.Fatal("it is open")
	}
	return fault.Public(err)
}
