package telegram

import (
	"bytes"
	"image"
	_ "image/jpeg" // pictures of bots are JPEG
	"strings"
	"unicode/utf8"
)

// Profile is what people see of the bot.
type Profile struct {
	Description, ShortDescription string
	Pictures                      [][]byte // the newest first
}

// Account is what the bot says about itself: its menu, and its profile.
type Account struct {
	*platform

	chats    *Chats
	commands map[string][]Command // by scope and language
	profile  Profile
}

// Profile returns the bot's.
func (a *Account) Profile() Profile {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.profile
	p.Pictures = append([][]byte{}, p.Pictures...)
	return p
}

func getMe(r *request) (any, *apiError) {
	return struct {
		User
		CanJoinGroups           bool `json:"can_join_groups"`
		CanReadAllGroupMessages bool `json:"can_read_all_group_messages"`
		SupportsInlineQueries   bool `json:"supports_inline_queries"`
	}{User: r.server.bot, CanJoinGroups: true, CanReadAllGroupMessages: !r.server.opts.Privacy}, nil
}

// Limits of descriptions in characters (Bot API, setMyDescription and
// setMyShortDescription).
const (
	maxBotDescription   = 512
	maxShortDescription = 120
)

func setText(name string, most int, to *string) handler {
	return func(r *request) (any, *apiError) {
		if utf8.RuneCountInString(r.p[name]) > most {
			return nil, badRequest("%s is too long", name)
		}
		*to = r.p[name]
		return true, nil
	}
}

func getText(name string, from *string) handler {
	return func(*request) (any, *apiError) { return map[string]string{name: *from}, nil }
}

func (a *Account) setMyProfilePhoto(r *request) (any, *apiError) {
	var photo struct{ Type, Photo string }
	if given, refused := r.p.json("photo", &photo); refused != nil || !given {
		return nil, badRequest("photo isn't specified")
	}
	name, attached := strings.CutPrefix(photo.Photo, "attach://")
	file, there := r.files[name]
	if photo.Type != "static" || !attached || !there { // profile photos cannot be reused
		return nil, badRequest("wrong profile photo specified")
	}
	img, kind, err := image.DecodeConfig(bytes.NewReader(file.data))
	if err != nil || kind != "jpeg" || img.Width < 160 || img.Height < 160 {
		return nil, badRequest("PHOTO_INVALID_DIMENSIONS")
	}
	a.profile.Pictures = append([][]byte{file.data}, a.profile.Pictures...)
	return true, nil
}

func (a *Account) getUserProfilePhotos(r *request) (any, *apiError) {
	photos := [][]map[string]any{}
	if r.p.int("user_id", 0) == a.bot.ID {
		for _, data := range a.profile.Pictures {
			photos = append(photos, []map[string]any{{"file_id": "picture", "file_unique_id": "p", "width": pictureWidth(data), "height": pictureWidth(data), "file_size": len(data)}})
		}
	}
	return map[string]any{"total_count": len(photos), "photos": photos}, nil
}

func pictureWidth(data []byte) int {
	img, _, _ := image.DecodeConfig(bytes.NewReader(data)) // it was looked at
	return img.Width
}
