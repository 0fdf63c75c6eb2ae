package github

import ("testing";"strings";"time")

func TestProf(t *testing.T) {
	for _, u := range []string{"[a]: b\n", "[^a]: b\n","<a href=x "} {
	for _, n := range []int{5000, 10000,20000,40000} {
		s := shallow(strings.Repeat(u, n/len(u)))
		b := time.Now(); read(s); t.Logf("%q %d read %v", u, n, time.Since(b))
		b = time.Now(); Sanitize(s); t.Logf("%q %d sanitize %v", u, n, time.Since(b))
	}}
}
