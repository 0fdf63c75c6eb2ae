package app

import (
	"testing"

	"remote-agent/internal/config"
	"remote-agent/internal/fault"
)

// TestAgentsTakeNoNameOfAModel: an agent that is called as a model API is would answer in
// its place.
func TestAgentsTakeNoNameOfAModel(t *testing.T) {
	t.Parallel()
	cfg := config.Config{Sections: Sections()}
	for _, k := range modelsOf(cfg) {
		cfg.Agents.Others = k.Assistant() + "=agent"
		if _, err := newPrograms(cfg, Env{}).knownAgents(); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", cfg.Agents.Others, err)
		}
	}
}
