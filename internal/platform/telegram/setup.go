package telegram

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/jpeg"
	"strings"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"remote-agent/internal/fault"
	"remote-agent/internal/setup"
)

// SetUp implements platform.Guided.
func (k *kind) SetUp(string) setup.Step {
	return setup.Step{Name: "telegram", Title: "Telegram", Ways: []setup.Way{{
		Name: "token", Title: "your own bot, from @BotFather",
		Guide: []string{
			"Open https://t.me/BotFather and send /newbot.",
			"Choose a name, then a username that ends in bot.",
			"Copy the token from the answer: digits, a colon, letters.",
		},
		Fields: []setup.Field{{Name: "TELEGRAM_BOT_TOKEN", Label: "Bot token", Secret: true}},
		Proof:  setup.Proof{Areas: []string{string(Name)}, Later: []string{"webhook"}},
		Opens:  "People can write to the bot on Telegram once you are its owner: open the one-time link that the bot prints.",
	}, {
		Name: "off", Title: "turn Telegram off",
		Set:   map[string]string{"TELEGRAM_BOT_TOKEN": ""},
		Opens: "The bot no longer uses Telegram.",
	}}}
}

// What a chat with the bot shows before the first message (at most 512 characters), and
// its profile (at most 120).
const (
	description      = "I am your team's coding assistant. Ask about your repositories, have a change planned, approve it, and watch it being made.\n\nOnly people whom an owner has let in get an answer. /help shows what I can do."
	shortDescription = "A self-hosted coding assistant for teams."
)

// Introduce implements platform.Introducer.
func (a *account) Introduce(ctx context.Context) (string, error) {
	var did []string
	steps := []struct {
		what string
		do   func(ctx context.Context) (bool, error)
	}{
		{"description", a.describe}, {"short description", a.describeShortly}, {"picture", a.givePicture},
	}
	for _, s := range steps {
		done, err := s.do(ctx)
		if err != nil {
			return strings.Join(did, ", "), err
		}
		if done {
			did = append(did, s.what)
		}
	}
	return strings.Join(did, ", "), nil
}

func (a *account) describe(ctx context.Context) (bool, error) {
	now, err := ask(ctx, a.client, "getMyDescription", (*bot.Bot).GetMyDescription, &bot.GetMyDescriptionParams{})
	if err != nil || now.Description != "" {
		return false, err
	}
	return ask(ctx, a.client, "setMyDescription", (*bot.Bot).SetMyDescription, &bot.SetMyDescriptionParams{Description: description})
}

func (a *account) describeShortly(ctx context.Context) (bool, error) {
	now, err := ask(ctx, a.client, "getMyShortDescription", (*bot.Bot).GetMyShortDescription, &bot.GetMyShortDescriptionParams{})
	if err != nil || now.ShortDescription != "" {
		return false, err
	}
	return ask(ctx, a.client, "setMyShortDescription", (*bot.Bot).SetMyShortDescription, &bot.SetMyShortDescriptionParams{ShortDescription: shortDescription})
}

// givePicture leaves a picture that somebody has chosen.
func (a *account) givePicture(ctx context.Context) (bool, error) {
	now, err := ask(ctx, a.client, "getUserProfilePhotos", (*bot.Bot).GetUserProfilePhotos, &bot.GetUserProfilePhotosParams{UserID: a.botID, Limit: 1})
	if err != nil || now.TotalCount > 0 {
		return false, err
	}
	data, err := picture()
	if err != nil {
		return false, err
	}
	return ask(ctx, a.client, "setMyProfilePhoto", (*bot.Bot).SetMyProfilePhoto, &bot.SetMyProfilePhotoParams{Photo: &models.InputProfilePhotoStatic{
		Photo: "attach://picture.jpg", MediaAttachment: bytes.NewReader(data),
	}})
}

// pictureSize is its width and height; Telegram shows it in a circle.
const pictureSize = 640

// picture draws a speech bubble with a prompt in it.
func picture() ([]byte, error) {
	ground, bubble, ink := color.RGBA{31, 41, 55, 255}, color.RGBA{243, 244, 246, 255}, color.RGBA{37, 99, 235, 255}
	img := image.NewRGBA(image.Rect(0, 0, pictureSize, pictureSize))
	for y := range pictureSize {
		for x := range pictureSize {
			c := ground
			switch {
			case inPrompt(x, y):
				c = ink
			case inBubble(x, y):
				c = bubble
			}
			img.SetRGBA(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 90}); err != nil {
		return nil, fault.Wrap(err, fault.Internal, "draw the picture")
	}
	return b.Bytes(), nil
}

// inBubble is a rectangle with round corners, and a tail below its left side.
func inBubble(x, y int) bool {
	const left, right, top, bottom, round = 130, 510, 170, 430, 60
	if y >= bottom && y < bottom+70 && x >= left+70 && x < left+70+(bottom+70-y) {
		return true
	}
	if x < left || x > right || y < top || y > bottom {
		return false
	}
	dx := max(left+round-x, x-(right-round), 0)
	dy := max(top+round-y, y-(bottom-round), 0)
	return dx*dx+dy*dy <= round*round
}

// inPrompt is ">_".
func inPrompt(x, y int) bool {
	const left, middle, height, thick = 215, 300, 65, 26
	dy := max(middle-y, y-middle)
	if tip := left + height - dy; dy <= height && x >= tip-thick/2 && x <= tip+thick {
		return true
	}
	return x >= 330 && x <= 430 && y >= middle+height-thick && y <= middle+height
}
