package messages_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"remote-agent/internal/messages"
)

func TestArrayForkIsIndependent(t *testing.T) {
	t.Parallel()
	var a messages.Array
	for i := range 20 {
		m := messages.NewText(messages.RoleUser, fmt.Sprint(i))
		m.ProviderMetadata = json.RawMessage(`{}`)
		a.Append(m)
	}
	fork, clone := a.Fork(5), a.Clone()
	if a.Len() != 20 || fork.Len() != 5 || clone.Len() != 20 {
		t.Fatalf("lengths %d, %d, %d", a.Len(), fork.Len(), clone.Len())
	}
	fork.Append(messages.NewText(messages.RoleAssistant, "other"))
	fork.Messages()[0].Blocks[0] = messages.Text{Text: "changed"}
	clone.Messages()[1].ProviderMetadata[0] = '!'
	for i, m := range a.Messages() {
		want := messages.Message{Role: messages.RoleUser, Blocks: []messages.Block{messages.Text{Text: fmt.Sprint(i)}}, ProviderMetadata: json.RawMessage(`{}`)}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("message %d of the origin changed (-want +got):\n%s", i, diff)
		}
	}
	a.Clear()
	if a.Len() != 0 || clone.Len() != 20 {
		t.Errorf("after Clear: %d and %d messages", a.Len(), clone.Len())
	}
}

func TestArrayForkOutsideIsMovedInside(t *testing.T) {
	t.Parallel()
	a := messages.NewArray(messages.NewText(messages.RoleUser, "x"))
	if n := a.Fork(-1).Len(); n != 0 {
		t.Errorf("Fork(-1) has %d messages", n)
	}
	if n := a.Fork(9).Len(); n != 1 {
		t.Errorf("Fork(9) has %d messages", n)
	}
	if n := new(messages.Array).Clone().Len(); n != 0 {
		t.Errorf("clone of an empty array has %d messages", n)
	}
}

// It is not parallel, because it counts the allocations of the process.
func TestArrayGrowsGeometrically(t *testing.T) {
	m := messages.NewText(messages.RoleUser, "x")
	allocations := testing.AllocsPerRun(5, func() {
		var a messages.Array
		for range 10_000 {
			a.Append(m)
		}
	})
	if allocations > 40 {
		t.Errorf("10,000 appends made %v allocations, want amortized growth", allocations)
	}
}

func BenchmarkArrayAppend(b *testing.B) {
	m := messages.NewText(messages.RoleUser, "x")
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var a messages.Array
			for range n {
				a.Append(m)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%n == 0 {
					a = *messages.NewArray(a.Messages()[:n]...)
				}
				a.Append(m)
			}
		})
	}
}
