package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/platform/exchange"
)

// codeError is the error code of an answer that is not ok.
type codeError struct {
	code   string
	detail string // what Slack says about it
}

func (e *codeError) Error() string {
	if e.detail == "" {
		return e.code
	}
	return e.code + ": " + e.detail
}

// codeOf returns the error code that Slack answered with, or nothing.
func codeOf(err error) string {
	if e, ok := errors.AsType[*codeError](err); ok {
		return e.code
	}
	return ""
}

// refused classifies an answer that is not ok. It is one of the two places
// where foreign errors of calls enter the program.
func (a *api) refused(r request, head reply, after time.Duration) error {
	detail := strings.Join(head.Metadata.Messages, "; ")
	if head.Needed != "" {
		detail = strings.TrimSpace("needs " + head.Needed + " " + detail)
	}
	cause := &codeError{code: a.scrub.Text(head.Error), detail: a.scrub.Text(detail)}
	f := &fault.Error{Err: fmt.Errorf("%s: %w", r.method, cause)}
	f.Kind, f.Public = kindOfCode(r, head)
	switch f.Kind {
	case fault.RateLimited:
		f.RetryAfter = max(after, time.Second)
		if head.Error == "message_limit_exceeded" { // of the whole workspace, and Slack does not say for how long
			f.RetryAfter = max(after, workspacePause)
		}
	case fault.Unavailable:
		// Part of the operation may have succeeded (contract B4.9).
		f.Uncertain = !r.idempotent && slices.Contains(ambiguousCodes, head.Error)
	case fault.Unauthorized:
		a.observe("unauthorized")
	default: // nothing to add
	}
	return f
}

// workspacePause is how long at least nothing is sent where a workspace has sent too much.
const workspacePause = 30 * time.Second

var ambiguousCodes = []string{"internal_error", "fatal_error", "request_timeout"}

// kindOfCode classifies an error code of the Web API (contract B4, and the
// lists of errors on the methods' pages).
func kindOfCode(r request, head reply) (fault.Kind, string) {
	switch head.Error {
	case "ratelimited", "rate_limited", "message_limit_exceeded":
		return fault.RateLimited, ""
	case "internal_error", "fatal_error", "request_timeout", "service_unavailable", "upstream_error",
		"team_added_to_org", "org_login_required", "external_channel_migrating": // the last three while a workspace or a channel moves
		return fault.Unavailable, ""
	case "invalid_auth", "not_authed", "account_inactive", "token_revoked", "token_expired", "app_missing_action_url", "app_not_installed":
		if r.app {
			return fault.Unauthorized, "Slack refused the app-level token. Check SLACK_APP_TOKEN."
		}
		return fault.Unauthorized, "Slack refused the bot's token. Check SLACK_BOT_TOKEN."
	case "not_allowed_token_type":
		if r.app {
			return fault.Unauthorized, "SLACK_APP_TOKEN is not an app-level token with the scope connections:write."
		}
		return fault.Forbidden, ""
	case "access_denied":
		if r.app {
			return fault.Forbidden, "Socket Mode is switched off for the Slack app."
		}
		return fault.Forbidden, ""
	case "missing_scope", "no_permission":
		if head.Needed != "" {
			return fault.Forbidden, "The Slack app lacks the scope " + head.Needed + ". Add it to the app and install it again."
		}
		return fault.Forbidden, ""
	case "not_in_channel":
		return fault.Forbidden, "The bot is not in that channel. Invite it with /invite, then ask again."
	case "accesslimited":
		return fault.Forbidden, "The workspace does not allow calls from the bot's network."
	case "restricted_action", "restricted_action_read_only_channel", "restricted_action_thread_only_channel",
		"restricted_action_non_threadable_channel", "restricted_action_thread_locked", "ekm_access_denied", "team_access_not_granted":
		return fault.Forbidden, "The workspace does not allow the bot to post there."
	case "channel_not_found", "is_archived":
		return fault.Gone, "Cannot post in that channel: it is archived, or the bot is not a member. Invite it with /invite, then ask again."
	case "thread_not_found", "invalid_thread_ts", "cannot_reply_to_message":
		return fault.Gone, "Slack takes no reply to that message. Ask again in a new one."
	case "messages_tab_disabled", "user_not_in_channel", "cannot_dm_bot", "user_disabled":
		return fault.Gone, ""
	case "streaming_state_conflict", "message_not_in_streaming_state", "stopped_by_user":
		return fault.Conflict, ""
	case "message_not_found", "edit_window_closed", "cant_update_message", "block_mismatch", "file_not_found", "file_deleted",
		"user_not_found", "no_reaction", "bad_timestamp", "update_failed", "is_inactive":
		return fault.NotFound, ""
	default:
		return fault.Invalid, ""
	}
}

// failed classifies a call that got no answer of the Web API.
func failed(ctx context.Context, r request, c *exchange.Call, err error) error {
	f := c.Failure(ctx, r.method, err)
	switch status := c.Status(); {
	case status == http.StatusTooManyRequests:
		f.Kind, f.RetryAfter = fault.RateLimited, max(f.RetryAfter, time.Second)
	case status == http.StatusUnauthorized:
		f.Kind, f.Public = kindOfCode(r, reply{Error: "invalid_auth"})
	case status >= 300 && status < 500:
		f.Kind = fault.Invalid
	}
	return f
}
