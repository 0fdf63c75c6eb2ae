package platform_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"remote-agent/internal/platform"
	"remote-agent/internal/waittest"
)

// posting is a request whose body is on its way.
type posting struct {
	t *testing.T
	net.Conn
}

// post begins a request to a server that reads bodies of up to 25 MiB. It says that its body
// has so many bytes, and brings none yet.
func post(t *testing.T, size int) posting {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, status := platform.ReadBody(w, r, 25<<20)
		w.WriteHeader(status)
		fmt.Fprint(w, len(body)) //nolint:errcheck // the client may have gone
	}))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(waittest.Scaled(5 * time.Second))); err != nil {
		t.Fatal(err)
	}
	p := posting{t, conn}
	p.bring("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + strconv.Itoa(size) + "\r\n\r\n")
	return p
}

func (p posting) bring(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p, text); err != nil {
		p.t.Error(err)
	}
}

// answer returns the status, with when to come again or the number of bytes that were read.
func (p posting) answer() string {
	p.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(p), nil)
	if err != nil {
		return err.Error()
	}
	said, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", string(said), " ", resp.Header.Get("Retry-After")))
}

// within waits until so many bytes of room are taken.
func within(t *testing.T, taken int64) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("%d bytes of room are taken", taken), func() bool { return platform.Taken() == taken })
}

const mebibyte = 1 << 20

// TestSlowBodiesMakeRoom: who is slow to send large bodies takes memory up to a bound, and
// does not keep out who is not.
func TestSlowBodiesMakeRoom(t *testing.T) { // not parallel: the room is that of the process
	almost := strings.Repeat("x", mebibyte-1)
	var slow []posting
	for i := range 16 {
		p := post(t, mebibyte)
		p.bring(almost)
		within(t, int64(i+1)*(mebibyte-platform.Small))
		slow = append(slow, p)
	}
	free := post(t, platform.Small) // takes no room
	free.bring(almost[:platform.Small])
	if got, want := free.answer(), "200 "+strconv.Itoa(platform.Small); got != want {
		t.Errorf("a small body is answered %q, want %q", got, want)
	}
	quick := post(t, 2*mebibyte)
	quick.bring(almost + almost + "yy")
	if got, want := quick.answer(), "200 "+strconv.Itoa(2*mebibyte); got != want {
		t.Errorf("a large body is answered %q, want %q", got, want)
	}
	if got := slow[0].answer(); got != "503 0 1" {
		t.Errorf("the one that was slow for longest is answered %q", got)
	}
	last := slow[15] // was not in the way
	last.bring("y")
	if got, want := last.answer(), "200 "+strconv.Itoa(mebibyte); got != want {
		t.Errorf("the last one is answered %q, want %q", got, want)
	}
	for _, p := range slow {
		_ = p.Close()
	}
	within(t, 0)
}

// TestLargestBodiesGoOneByOne: of two that need more room than there is, one is read.
func TestLargestBodiesGoOneByOne(t *testing.T) { // not parallel, as above
	const size = 24 * mebibyte
	begin, rest := strings.Repeat("x", 2*mebibyte), strings.Repeat("x", size-2*mebibyte)
	first, second := post(t, size), post(t, size)
	first.bring(begin[:mebibyte-1])
	within(t, mebibyte-platform.Small)
	second.bring(begin[:mebibyte-1])
	within(t, 2*(mebibyte-platform.Small))
	answers := make(chan string, 2)
	for _, p := range []posting{first, second} {
		go func() { _, _ = io.WriteString(p, begin[mebibyte-1:]+rest) }()
		go func() { answers <- p.answer() }()
	}
	got := map[string]int{<-answers: 1}
	got[<-answers]++
	if got["200 "+strconv.Itoa(size)] != 1 || got["503 0 1"] != 1 {
		t.Errorf("they are answered %v", got)
	}
	within(t, 0)
}
