package messages

import "strings"

// What a request shows of files: beyond that older ones are only named.
const (
	maxShown      = 20
	maxShownBytes = 12 << 20
)

// Noted returns a with another note behind those that it has.
func (a Attachment) Noted(note string) Attachment {
	a.Note = strings.TrimPrefix(a.Note+"; "+note, "; ")
	return a
}

// ShowFiles returns the messages of a request with the data of the files that they have,
// the newest first, as many as a request holds: 20, and 12 MB. Others have a note that says
// so. fetch returns a file with its Data, or with a note that says why there is none. ShowFiles
// changes nothing that it is given; its errors are those of fetch.
func ShowFiles(array []Message, fetch func(Attachment) (Attachment, error)) ([]Message, error) {
	return showFiles(array, 1, fetch)
}

// BoundFiles returns the messages of a request without the data of the oldest files if they
// show more than a request holds. Then half of that is left, so that what comes before the
// files of the next requests is the same, and a provider's cache of it is of use. It changes
// nothing that it is given.
func BoundFiles(array []Message) []Message {
	files, bytes := 0, 0
	for _, m := range array {
		for _, b := range m.Blocks {
			if a, is := b.(Attachment); is && a.Data != "" {
				files, bytes = files+1, bytes+len(a.Data)
			}
		}
	}
	if files <= maxShown && bytes <= maxShownBytes {
		return array
	}
	bounded, _ := showFiles(array, 2, nil) // without a fetch nothing fails
	return bounded
}

// showFiles is ShowFiles with a part of what a request holds, but at least the newest file. Without
// fetch, files that have no data stay as they are.
func showFiles(array []Message, part int, fetch func(Attachment) (Attachment, error)) ([]Message, error) {
	var shown []Message // array, once something in it is another
	files, bytes := 0, int64(0)
	for m := len(array) - 1; m >= 0; m-- {
		copied := false
		for b := len(array[m].Blocks) - 1; b >= 0; b-- {
			a, is := array[m].Blocks[b].(Attachment)
			if !is || a.File == "" || fetch == nil && a.Data == "" {
				continue
			}
			if files++; files > maxShown/part || files > 1 && bytes+a.Size > int64(maxShownBytes/part) {
				a.Data = ""
				a = a.Noted("not shown again, because of the files that came after it")
			} else if fetch != nil {
				var err error
				if a, err = fetch(a); err != nil {
					return nil, err
				}
			}
			bytes += int64(len(a.Data))
			if shown == nil {
				shown = append(shown, array...)
			}
			if !copied {
				shown[m].Blocks = append([]Block(nil), array[m].Blocks...)
				copied = true
			}
			shown[m].Blocks[b] = a
		}
	}
	if shown == nil {
		return array, nil
	}
	return shown, nil
}
