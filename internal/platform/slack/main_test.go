package slack_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The fake server of the Slack library never ends what writes to its sockets.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/slack-go/slack/slacktest.handlePendingMessages"))
}
