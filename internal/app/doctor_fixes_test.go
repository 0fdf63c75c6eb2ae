package app

import (
	"log/slog"
	"strings"
	"testing"

	"remote-agent/internal/assistant/openai"
	"remote-agent/internal/config"
	"remote-agent/internal/doctor"
)

func TestDoctorNamesWhatIsWrongWithEachListOfHosts(t *testing.T) {
	t.Parallel()
	var cfg config.Config
	cfg.Tools.Hosts, cfg.Agents.Hosts = []string{"https://example.com"}, []string{"claude=10.0.0.1"}
	found := newExamination(cfg, Env{Log: slog.New(slog.DiscardHandler)}).examineHosts(t.Context())
	if len(found) != 2 || !strings.HasPrefix(found[0].Detail, "TOOL_HOSTS: ") || !strings.HasPrefix(found[1].Detail, "AGENT_HOSTS: ") {
		t.Errorf("it finds %+v", found)
	}
}

func TestDoctorNamesTheAddressOfAModelThatIsAway(t *testing.T) {
	t.Parallel()
	m, err := openai.New(openai.Config{BaseURL: "http://127.0.0.1:1/v1", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	found := newExamination(config.Config{}, Env{Log: slog.New(slog.DiscardHandler)}).examineModel(t.Context(), m)
	if len(found) != 1 || found[0].Status != doctor.Fail || !strings.Contains(found[0].Fix, "OPENAI_API_KEY, OPENAI_BASE_URL and the model's name") {
		t.Errorf("it finds %+v", found)
	}
}
