package sketch_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"remote-agent/internal/heavytest"
	"remote-agent/internal/memory"
	"remote-agent/internal/memory/memorytest"
	"remote-agent/internal/memory/sketch"
)

// gaussian returns a vector around center, as far from it as noise says.
func gaussian(r *rand.Rand, center memory.Vector, noise float64) memory.Vector {
	v := make(memory.Vector, memory.Dimensions)
	for i := range v {
		v[i] = float32(noise * r.NormFloat64())
		if center != nil {
			v[i] += center[i]
		}
	}
	return v
}

// kinds are sets of vectors of different nature, with the questions to ask.
func kinds(r *rand.Rand, n int) map[string][]memory.Vector {
	random, clustered, skewed, sparse := make([]memory.Vector, n), make([]memory.Vector, n), make([]memory.Vector, n), make([]memory.Vector, n)
	centers := make([]memory.Vector, 40)
	for i := range centers {
		centers[i] = gaussian(r, nil, 1)
	}
	bias := gaussian(r, nil, 1)
	letters := []string{"tea", "coffee", "berlin", "paris", "tabs", "spaces", "go", "rust", "slack", "heron", "garden", "budget"}
	for i := range n {
		random[i] = gaussian(r, nil, 1)
		clustered[i] = gaussian(r, centers[r.IntN(len(centers))], 0.5)
		skewed[i] = gaussian(r, bias, 0.7) // real models give vectors that all point somewhere
		text := ""
		for range 5 {
			text += letters[r.IntN(len(letters))] + string(rune('a'+r.IntN(26))) + " "
		}
		sparse[i] = memorytest.Vector(text)
	}
	return map[string][]memory.Vector{"random": random, "clustered": clustered, "skewed": skewed, "sparse": sparse}
}

func TestEstimatesAreNearTheCosineAndUpperIsABound(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for name, list := range kinds(r, heavytest.Size(1000, 4000)) {
		var square float64
		above, pairs := 0, 0
		var chunk []byte
		for i, v := range list {
			chunk = sketch.Append(chunk, int64(i+1), time.Time{}, v)
		}
		for q := range 10 {
			s := sketch.NewShortlist(sketch.NewProbe(list[q]), len(list), -2, time.Now())
			s.Add(sketch.Decode(chunk))
			for _, e := range s.Best() {
				exact := memory.Cosine(list[q], list[e.ID-1])
				square += (e.Similarity - exact) * (e.Similarity - exact)
				if pairs++; exact > e.Upper {
					above++
				}
			}
		}
		if pairs != 10*len(list) {
			t.Fatalf("%s: %d pairs", name, pairs)
		}
		deviation := math.Sqrt(square / float64(pairs))
		t.Logf("%s: standard deviation %.4f, %d of %d above the bound", name, deviation, above, pairs)
		if deviation > 0.025 || above > pairs/1000 {
			t.Errorf("%s: standard deviation %.4f, %d of %d above the bound", name, deviation, above, pairs)
		}
	}
}

// The ten nearest of all are among the best of a shortlist.
func TestShortlistHasTheNearest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for name, list := range kinds(r, heavytest.Size(5000, 20_000)) {
		chunk, encoded := make([]byte, 0, len(list)*sketch.Size), make([][]byte, len(list))
		for i, v := range list {
			chunk, encoded[i] = sketch.Append(chunk, int64(i+1), time.Time{}, v), v.Encode()
		}
		found, of := 0, 0
		for q := range 20 {
			probe := list[q*31]
			s := sketch.NewShortlist(sketch.NewProbe(probe), heavytest.Size(250, 500), -2, time.Now())
			s.Add(sketch.Decode(chunk))
			short := make(map[int64]bool)
			for _, e := range s.Best() {
				short[e.ID] = true
			}
			exact := make([]int64, len(list))
			similarity := make([]float64, len(list)+1)
			p := memory.NewProbe(probe)
			for i := range list {
				exact[i], similarity[i+1] = int64(i+1), p.Cosine(encoded[i])
			}
			slices.SortFunc(exact, func(a, b int64) int { return cmp.Compare(similarity[b], similarity[a]) })
			for _, id := range exact[:10] {
				if of++; short[id] {
					found++
				}
			}
		}
		t.Logf("%s: %d of %d", name, found, of)
		if found < of*9/10 {
			t.Errorf("%s: %d of the %d nearest are on the shortlist", name, found, of)
		}
	}
}

func TestShortlistLeavesOut(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	v := memorytest.Vector("green tea")
	var chunk []byte
	for id, expires := range map[int64]time.Time{1: {}, 2: now.Add(-time.Second), 3: now.Add(time.Millisecond), 4: now.AddDate(300, 0, 0), 0: {}} {
		chunk = sketch.Append(chunk, id, expires, v)
	}
	if len(chunk) != 5*sketch.Size {
		t.Fatalf("%d bytes", len(chunk))
	}
	chunk = append(chunk, make([]byte, 3*sketch.Size)...)                                                  // removed
	chunk = append(chunk, 1, 2, 3)                                                                         // torn
	chunk = sketch.Append(chunk[:8*sketch.Size], 5, now, v)                                                // in this very second
	chunk = append(sketch.Append(chunk, 6, time.Time{}, gaussian(rand.New(rand.NewPCG(1, 1)), nil, 1)), 1) // unlike
	s := sketch.NewShortlist(sketch.NewProbe(v), 10, 0.85, now)
	s.Add(sketch.Decode(chunk))
	var got []int64
	for _, e := range s.Best() {
		got = append(got, e.ID)
		if e.Upper < 0.99 || e.Similarity < 0.9 {
			t.Errorf("the same vector is estimated %+v", e)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, []int64{1, 3, 4, 5}) {
		t.Errorf("rows %v", got)
	}
}

// On several processors the same is found, whichever is done first.
func TestChunksTogetherAreChunksOneByOne(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	center := gaussian(r, nil, 1)
	chunks := make([]*sketch.Chunk, 1000)
	for i := range chunks {
		var chunk []byte
		for j := range 4 {
			chunk = sketch.Append(chunk, int64(4*i+j+1), time.Time{}, gaussian(r, center, 1))
		}
		chunks[i] = sketch.Decode(chunk)
	}
	for _, limit := range []int{5, 300, 5000} {
		probe := sketch.NewProbe(gaussian(r, center, 1))
		one, all := sketch.NewShortlist(probe, limit, 0.2, time.Now()), sketch.NewShortlist(probe, limit, 0.2, time.Now())
		for _, chunk := range chunks {
			one.Add(chunk)
		}
		all.AddAll(chunks)
		if want, got := one.Best(), all.Best(); !slices.Equal(got, want) || len(want) < min(limit, 3000) {
			t.Errorf("limit %d: %d rows and not the %d of one by one", limit, len(got), len(want))
		}
	}
}

// Whatever is in a chunk, looking through it ends and finds at most what it holds.
func FuzzShortlist(f *testing.F) {
	f.Add([]byte{}, 3)
	f.Add(sketch.Append(nil, 7, time.Time{}, memorytest.Vector("tea")), 1)
	f.Add(make([]byte, 300), 0)
	probe := sketch.NewProbe(memorytest.Vector("green tea"))
	f.Fuzz(func(t *testing.T, chunk []byte, limit int) {
		if limit < 1 || limit > 1000 {
			return
		}
		s := sketch.NewShortlist(probe, limit, 0.35, time.Unix(1e9, 0))
		s.Add(sketch.Decode(chunk))
		best := s.Best()
		if len(best) > min(limit, len(chunk)/sketch.Size) {
			t.Fatalf("%d rows of %d bytes", len(best), len(chunk))
		}
		for i, e := range best {
			if e.ID == 0 || math.IsNaN(e.Upper) || math.IsNaN(e.Similarity) || i > 0 && e.Upper > best[i-1].Upper {
				t.Fatalf("row %d is %+v", i, e)
			}
		}
	})
}

// The quick look at a sketch turns away none that would have been let in.
func TestAFloorChangesNothingAboveIt(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	for name, list := range kinds(r, heavytest.Size(1000, 4000)) {
		var chunk []byte
		for i, v := range list {
			chunk = sketch.Append(chunk, int64(i+1), time.Time{}, v)
		}
		lost, above := 0, 0
		for q := range 10 {
			probe := sketch.NewProbe(list[q])
			for _, floor := range []float64{0.1, 0.35, 0.6, 0.85} {
				var all, some []sketch.Estimate
				for at, to := range map[float64]*[]sketch.Estimate{-2: &all, floor: &some} {
					s := sketch.NewShortlist(probe, len(list), at, time.Now())
					s.Add(sketch.Decode(chunk))
					*to = s.Best()
				}
				all = slices.DeleteFunc(all, func(e sketch.Estimate) bool { return e.Upper < floor })
				lost, above = lost+len(all)-len(some), above+len(all)
			}
		}
		t.Logf("%s: %d of %d lost", name, lost, above)
		if lost > above/10_000 {
			t.Errorf("%s: %d of %d lost", name, lost, above)
		}
	}
}

func BenchmarkShortlist(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	var chunk []byte
	for i := range 10_000 {
		chunk = sketch.Append(chunk, int64(i+1), time.Time{}, gaussian(r, nil, 1))
	}
	decoded, probe := sketch.Decode(chunk), sketch.NewProbe(gaussian(r, nil, 1))
	for b.Loop() {
		s := sketch.NewShortlist(probe, 1000, 0.35, time.Now())
		for range 10 {
			s.Add(decoded)
		}
		s.Best()
	}
}
