package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
)

// refusal says why PostgreSQL did not accept a connection, and what helps. The words of
// the server are in it where it has several reasons under one code; they name users,
// databases and addresses, never a password.
func refusal(c *pgconn.Config, err error) string {
	said, _ := errors.AsType[*pgconn.PgError](err)
	if said == nil {
		return "PostgreSQL at " + c.Host + " does not accept the connection" + unanswered(c, err)
	}
	why := fmt.Sprintf(": it says %.200q (%s)", said.Message, said.Code)
	switch said.Code {
	case "28P01":
		why = fmt.Sprintf(": it refuses the password of the user %q", c.User)
	case "28000":
		why += fmt.Sprintf("; create the user %q, or let it in with pg_hba.conf", c.User)
	case "3D000":
		why = fmt.Sprintf(": it has no database %q; create it with createdb", c.Database)
	case pgPrivilege:
		why = fmt.Sprintf(": the user %q may not use the database %q; GRANT CONNECT allows it", c.User, c.Database)
	case "53300":
		why = ": all of its connections are in use; raise max_connections, or set pool_max_conns in the address to use fewer"
	case "57P03", "57P01":
		why = ": it is starting or stopping; try again in a moment"
	}
	return "PostgreSQL at " + c.Host + " does not accept the connection" + why
}

// unanswered is the reason of a connection that no server of PostgreSQL refused.
func unanswered(c *pgconn.Config, err error) string {
	if unknown, ok := errors.AsType[*net.DNSError](err); ok && unknown.IsNotFound {
		return ": there is no host of this name"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return ": its certificate is not trusted; set sslrootcert in the address to the certificate of who signed it"
	}
	late, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf(": nothing listens on port %d; start it, or correct host and port", c.Port)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf(": there is no socket for port %d in this folder; start it, or correct folder and port", c.Port)
	case strings.Contains(err.Error(), "server refused TLS connection"):
		return ": it has no TLS; turn it on there, or leave sslmode out of the address if the network is yours"
	case ok && late.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf(": nothing answered on port %d within %s; check host, port and firewall", c.Port, c.ConnectTimeout)
	}
	return "; check that it runs, and host, port, user, password and database name"
}
