package modelhttp_test

import (
	"strings"
	"testing"

	"remote-agent/internal/assistant/modelhttp"
)

func TestWhatIsWrongWithFiles(t *testing.T) {
	t.Parallel()
	const anyOfThem, one, neither = "any", "one", ""
	for text, want := range map[string]string{
		"Could not process image": one,
		"messages.0.content.1.document.source.base64.data: The PDF specified was not valid.":                     one,
		"The PDF specified is password protected.":                                                               one,
		"A maximum of 100 PDF pages may be provided.":                                                            one,
		"messages.2.content.0.image.source.base64: image exceeds 5 MB maximum: 5468348 bytes > 5242880 bytes":    one,
		"At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels":      one,
		"The image was specified using the image/png media type, but the image appears to be a image/jpeg image": one,
		"You uploaded an unsupported image. Please make sure your image is valid.":                               one,
		"The image data you provided does not represent a valid image. Please check your input and try again.":   one,
		"Invalid image data":                            one,
		"Unable to process input image. Please retry.":  one,
		"The document has no pages.":                    one,
		"cannot identify image file <_io.BytesIO>":      one,
		"Failed to load image or audio file":            one,
		"image input is not supported - hint: mmproj":   anyOfThem,
		"No endpoints found that support image input":   anyOfThem,
		"Invalid image_url: this model takes texts":     neither,
		"unknown parameter: 'x'":                        neither,
		"Your request was rejected: prompt is too long": neither,
	} {
		text = strings.ToLower(text)
		got := neither
		switch {
		case modelhttp.RefusesAFile(text):
			got = one
		case modelhttp.RefusesFiles(text):
			got = anyOfThem
		}
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
