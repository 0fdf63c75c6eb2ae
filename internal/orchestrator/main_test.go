package orchestrator_test

import (
	"os"
	"testing"

	"remote-agent/internal/failpoint"
	"remote-agent/internal/orchestrator/orchestratortest"
	"remote-agent/internal/store/storetest"
)

func TestMain(m *testing.M) {
	failpoint.Arm(orchestratortest.Reached)
	os.Exit(storetest.Main(m))
}
