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

// Profile returns the bot's.
func (s *Server) Profile() Profile {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.profile
	p.Pictures = append([][]byte{}, p.Pictures...)
	return p
}

// SetProfile is what @BotFather was told before.
func (s *Server) SetProfile(p Profile) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profile = p
}

// Limits of descriptions in characters (Bot API, setMyDescription and
// setMyShortDescription).
const (
	maxBotDescription   = 512
	maxShortDescription = 120
)

func (s *Server) setText(text, name string, most int, to *string) (any, *apiError) {
	if utf8.RuneCountInString(text) > most {
		return nil, badRequest("%s is too long", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*to = text
	return true, nil
}

func (s *Server) getText(name string, from *string) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]string{name: *from}, nil
}

func (s *Server) setMyProfilePhoto(p params, files uploads) (any, *apiError) {
	var photo struct{ Type, Photo string }
	if given, refused := p.json("photo", &photo); refused != nil || !given {
		return nil, badRequest("photo isn't specified")
	}
	name, attached := strings.CutPrefix(photo.Photo, "attach://")
	file, there := files[name]
	if photo.Type != "static" || !attached || !there { // profile photos cannot be reused
		return nil, badRequest("wrong profile photo specified")
	}
	img, kind, err := image.DecodeConfig(bytes.NewReader(file.data))
	if err != nil || kind != "jpeg" || img.Width < 160 || img.Height < 160 {
		return nil, badRequest("PHOTO_INVALID_DIMENSIONS")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.profile.Pictures = append([][]byte{file.data}, s.profile.Pictures...)
	return true, nil
}

func (s *Server) getUserProfilePhotos(p params) (any, *apiError) {
	id := p.int("user_id", 0)
	s.mu.Lock()
	defer s.mu.Unlock()
	photos := [][]map[string]any{}
	if id == s.bot.ID {
		for _, data := range s.profile.Pictures {
			photos = append(photos, []map[string]any{{"file_id": "picture", "file_unique_id": "p", "width": pictureWidth(data), "height": pictureWidth(data), "file_size": len(data)}})
		}
	}
	return map[string]any{"total_count": len(photos), "photos": photos}, nil
}

func pictureWidth(data []byte) int {
	img, _, _ := image.DecodeConfig(bytes.NewReader(data)) // it was looked at
	return img.Width
}
