package metrics

import (
	"bufio"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Prometheus' text format 0.0.4 is written here and not by Prometheus' own client:
// that one brings Protocol Buffers along, two megabytes of the program, for a format
// that nobody asks for where the text is to be had.

// family is a metric of one name, with a series for each combination of the values of
// its labels.
type family struct {
	kind, name, help string
	labels           []string
	buckets          []float64 // upper bounds, of a histogram

	mu  sync.Mutex // guards all
	all map[string]*series
}

// series is what was counted for one combination of values. It is safe for concurrent
// use.
type series struct {
	buckets []float64 // of the family

	mu      sync.Mutex // guards all below
	value   float64    // of a histogram, the sum of what was observed
	counts  []uint64   // of a histogram, by bucket; those above the last are in count alone
	samples uint64
}

func (m *Metrics) family(kind, name, help string, buckets []float64, labels []string) *family {
	f := &family{kind: kind, name: name, help: help, labels: labels, buckets: buckets, all: map[string]*series{}}
	m.families = append(m.families, f)
	return f
}

// of returns the series for values, in the order of the family's labels.
func (f *family) of(values ...string) *series {
	pairs := make([]string, 0, len(values))
	for i, value := range values {
		pairs = append(pairs, f.labels[i]+`="`+value+`"`)
	}
	slices.Sort(pairs)
	key := strings.Join(pairs, ",")
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.all[key]
	if s == nil {
		s = &series{buckets: f.buckets, counts: make([]uint64, len(f.buckets))}
		f.all[key] = s
	}
	return s
}

func (s *series) add(n float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value += n
}

func (s *series) set(n float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value = n
}

// observe counts a sample of a histogram.
func (s *series) observe(n float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value += n
	s.samples++
	if i, _ := slices.BinarySearch(s.buckets, n); i < len(s.counts) {
		s.counts[i]++
	}
}

// write writes what was counted, in the order of the labels; nothing if nothing was.
func (f *family) write(w *bufio.Writer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		return
	}
	describe(w, f.kind, f.name, f.help)
	keys := make([]string, 0, len(f.all))
	for key := range f.all {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		f.all[key].write(w, f.name, key, f.kind == "histogram")
	}
}

func (s *series) write(w *bufio.Writer, name, labels string, histogram bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !histogram {
		sample(w, name, labels, s.value)
		return
	}
	before := labels
	if before != "" {
		before += ","
	}
	var sum uint64
	for i, bound := range s.buckets {
		sum += s.counts[i]
		sample(w, name+"_bucket", before+`le="`+figure(bound)+`"`, float64(sum))
	}
	sample(w, name+"_bucket", before+`le="+Inf"`, float64(s.samples))
	sample(w, name+"_sum", labels, s.value)
	sample(w, name+"_count", labels, float64(s.samples))
}

// describe begins a metric.
func describe(w *bufio.Writer, kind, name, help string) {
	put(w, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n")
}

// sample writes a line. Values of labels need no escaping: see labels.get, and the
// version, which is ours.
func sample(w *bufio.Writer, name, labels string, value float64) {
	if labels != "" {
		labels = "{" + labels + "}"
	}
	put(w, name, labels, " ", figure(value), "\n")
}

func figure(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

// put writes to a buffer, which keeps an error until it is flushed.
func put(w *bufio.Writer, texts ...string) {
	for _, text := range texts {
		_, _ = w.WriteString(text)
	}
}
