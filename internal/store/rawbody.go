package store

import (
	"sync"

	"github.com/klauspost/compress/s2"
)

// Bodies of events, as platforms send them, are stored compressed: they repeat the
// names of their fields, which a dictionary has. A stored body that begins with
// packedBody is a block of S2 with bodyDictionary; any other one is as it came, as
// those of versions that did not compress are.
const packedBody = 0x01

// bodyDictionary must not change, nor where it is looked at first: stored bodies could
// not be read. A new one needs a first byte of its own.
const bodyDictionary = `"performed_via_github_app":null,"state_reason":null,"assignees":[],"labels":[],"milestone":null,"author_association":"CONTRIBUTOR","draft":false,"pull_request":{"url":"https://api.github.com/repos/` +
	`"reactions":{"url":"https://api.github.com/repos/","total_count":0,"+1":0,"-1":0,"laugh":0,"hooray":0,"confused":0,"heart":0,"rocket":0,"eyes":0},"timeline_url":"` +
	`"labels_url":"","comments_url":"","events_url":"","html_url":"https://github.com/","node_id":"","number":,"title":"","state":"open","locked":false,"comments":0,"created_at":"2026-01-01T00:00:00Z","updated_at":"","closed_at":null,"body":"` +
	`"default_branch":"main","private":true,"full_name":"","owner":{"login":"","id":0,"node_id":"","avatar_url":"https://avatars.githubusercontent.com/u/","gravatar_id":"","url":"https://api.github.com/users/","html_url":"https://github.com/",` +
	`"followers_url":"/followers","following_url":"/following{/other_user}","gists_url":"/gists{/gist_id}","starred_url":"/starred{/owner}{/repo}","subscriptions_url":"/subscriptions","organizations_url":"/orgs","repos_url":"/repos","events_url":"/events{/privacy}","received_events_url":"/received_events","type":"User","user_view_type":"public","site_admin":false},` +
	`{"action":"created","issue":{"url":"https://api.github.com/repos/","comment":{"url":"","issue_url":"","user":{"login":"","repository":{"id":,"name":"","sender":{"login":"","installation":{"id":,` +
	`"entities":[{"offset":0,"length":,"type":"bot_command"}],"caption":"","photo":[{"file_id":"","file_unique_id":"","file_size":,"width":,"height":}],"message_thread_id":,"is_topic_message":true,"title":"","type":"supergroup","is_forum":true,"reply_to_message":{"message_id":,"edited_message":{"edit_date":,"callback_query":{"id":"","chat_instance":"","data":"` +
	`{"update_id":,"message":{"message_id":,"from":{"id":,"is_bot":false,"first_name":"","last_name":"","username":"","language_code":"en"},"chat":{"id":,"first_name":"","last_name":"","username":"","type":"private"},"date":17,"text":"` +
	`"from":{"id":,"is_bot":false,"first_name":""},"date":17,"chat":{"id":,"type":"private","first_name":""},"text":"` +
	`"token":"","command":"/","payload":"block_actions","subtype":"message_changed","files":[{"id":"","name":"","mimetype":"","filetype":"","url_private_download":"","thread_ts":"","parent_user_id":"","type":"app_mention","channel_type":"channel",` +
	`{"api_app_id":"A","authorizations":[{"enterprise_id":null,"is_bot":true,"is_enterprise_install":false,"team_id":"T","user_id":"U"}],"context_enterprise_id":null,"context_team_id":"T","event":{"blocks":[{"block_id":"","elements":[{"elements":[{"text":"","type":"text"}],"type":"rich_text_section"}],"type":"rich_text"}],"channel":"D","channel_type":"im",` +
	`"client_msg_id":"","event_ts":"17","team":"T","text":"","ts":"17","type":"message","user":"U"},"event_context":"4-","event_id":"Ev","event_time":17,"is_ext_shared_channel":false,"team_id":"T","type":"event_callback"}`

// packing compresses with the dictionary, which is made when it is needed first.
var packing = sync.OnceValue(func() *s2.Dict {
	return s2.MakeDict([]byte(bodyDictionary), []byte(`{"update_id":`))
})

// maxBody bounds what a stored body becomes, so that a damaged row cannot take all
// memory. Platforms send far less.
const maxBody = 64 << 20

// packBody returns a body as it is stored, NULL for none.
func packBody(body []byte) any {
	if len(body) == 0 || len(body) > maxBody {
		return bytesOrNull(body)
	}
	stored := make([]byte, 1+s2.MaxEncodedLen(len(body)))
	stored[0] = packedBody
	stored = stored[:1+len(packing().Encode(stored[1:], body))]
	if len(stored) >= len(body) && body[0] != packedBody {
		return body
	}
	return stored
}

// unpackBody returns a body as it came. One that looks compressed and cannot be read is
// returned as it is stored.
func unpackBody(stored []byte) []byte {
	if len(stored) == 0 || stored[0] != packedBody {
		return stored
	}
	if n, err := s2.DecodedLen(stored[1:]); err != nil || n > maxBody {
		return stored
	}
	body, err := packing().Decode(nil, stored[1:])
	if err != nil {
		return stored
	}
	return body
}
