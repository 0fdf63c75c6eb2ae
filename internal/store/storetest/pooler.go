package storetest

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TransactionPooler starts a stand-in for a pooler such as PgBouncer in transaction
// mode before the PostgreSQL server of a DATABASE_URL and returns the DATABASE_URL of
// the stand-in. Each transaction of a client gets one of three sessions of the server,
// another one each time; what a session remembers, such as prepared statements and locks, is
// left to whoever has it next. It ends with the test.
func TransactionPooler(t testing.TB, databaseURL string) string {
	t.Helper()
	config, err := pgconn.ParseConfig(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const sessions = 3
	p := &pooler{idle: make(chan *session, sessions)}
	for range sessions {
		conn, err := pgconn.ConnectConfig(context.WithoutCancel(t.Context()), config)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := conn.Hijack()
		if err != nil {
			t.Fatal(err)
		}
		p.params = raw.ParameterStatuses
		p.idle <- &session{Conn: raw.Conn, in: bufio.NewReader(raw.Conn)}
	}
	var working sync.WaitGroup
	working.Go(func() { p.serve(l, &working) })
	t.Cleanup(func() {
		_ = l.Close()
		p.close()
		working.Wait()
		for range sessions {
			_ = (<-p.idle).Close()
		}
	})
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(config.User, config.Password), Host: l.Addr().String(),
		Path: config.Database, RawQuery: "sslmode=disable",
	}).String()
}

type pooler struct {
	idle   chan *session // in the order in which they were given back
	params map[string]string

	mu      sync.Mutex // guards both below
	clients []net.Conn
	closed  bool
}

// session is a connection to the server.
type session struct {
	net.Conn

	in *bufio.Reader
}

func (p *pooler) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.clients {
		_ = c.Close()
	}
}

func (p *pooler) serve(l net.Listener, working *sync.WaitGroup) {
	for number := uint32(1 << 30); ; number++ {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.clients = append(p.clients, conn)
		closed := p.closed
		p.mu.Unlock()
		if closed {
			_ = conn.Close()
			return
		}
		working.Go(func() {
			defer conn.Close() //nolint:errcheck // may be gone
			c := &pooled{Conn: conn, in: bufio.NewReader(conn), pooler: p}
			if c.greet(number) == nil {
				c.work()
			}
		})
	}
}

// pooled is the connection of a client.
type pooled struct {
	net.Conn

	in     *bufio.Reader
	pooler *pooler
}

// greet does the beginning of the protocol, in which a pooler names a session of its own.
func (c *pooled) greet(number uint32) error {
	for {
		var head [8]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, c.in, int64(binary.BigEndian.Uint32(head[:4]))-8); err != nil {
			return err
		}
		if code := binary.BigEndian.Uint32(head[4:]); code != 80877103 && code != 80877104 { // asks for TLS, for GSS
			break
		}
		if _, err := c.Write([]byte{'N'}); err != nil {
			return err
		}
	}
	answer := frame('R', make([]byte, 4))
	for name, value := range c.pooler.params {
		answer = append(answer, frame('S', []byte(name+"\x00"+value+"\x00"))...)
	}
	answer = append(answer, frame('K', binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, number), 1))...)
	_, err := c.Write(append(answer, frame('Z', []byte{'I'})...))
	return err
}

func frame(kind byte, body []byte) []byte {
	out := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)) //nolint:gosec // small
	return append(out, body...)
}

// readFrame returns a whole message.
func readFrame(in *bufio.Reader) (kind byte, whole []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	if _, err := io.ReadFull(in, body); err != nil {
		return 0, nil, err
	}
	return head[0], append(head[:], body...), nil
}

// work gives the client a session for each of its transactions.
func (c *pooled) work() {
	for {
		kind, message, err := readFrame(c.in)
		if err != nil || kind == 'X' {
			return
		}
		s := <-c.pooler.idle
		ok := c.transaction(s, kind, message)
		c.pooler.idle <- s
		if !ok {
			return
		}
	}
}

// transaction passes messages on until the server is idle and owes no answer. It
// reports false if the client has left, whose transaction is rolled back then.
func (c *pooled) transaction(s *session, kind byte, message []byte) bool {
	owed := 0
	for alive := true; ; {
		if _, err := s.Write(message); err != nil {
			return false
		}
		if kind == 'Q' || kind == 'S' {
			owed++
		}
		// Everything that the client has sent comes before what it waits for.
		for owed > 0 && c.in.Buffered() == 0 {
			answer, body, err := readFrame(s.in)
			if err != nil {
				return false
			}
			if alive {
				if _, err := c.Write(body); err != nil {
					alive = false
				}
			}
			if answer != 'Z' {
				continue
			}
			if owed--; owed == 0 && body[5] == 'I' {
				return alive
			}
		}
		var err error
		if kind, message, err = readFrame(c.in); err != nil || kind == 'X' {
			alive = false
			kind, message = 'Q', frame('Q', []byte("ROLLBACK\x00"))
		}
	}
}
