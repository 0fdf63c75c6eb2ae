package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
)

//go:embed assets
var embedded embed.FS

// asset is a file that pages need: the style sheet, the script, the icon.
type asset struct {
	data        []byte
	contentType string
	path        string // changes with the content
}

// assets are all of them, by name.
type assets map[string]asset

func readAssets() assets {
	all := make(assets)
	entries, err := embedded.ReadDir("assets")
	if err != nil {
		panic(err) // they are in the program
	}
	for _, e := range entries {
		data, err := embedded.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err) // as above
		}
		sum := sha256.Sum256(data)
		ext := path.Ext(e.Name())
		kind := mime.TypeByExtension(ext)
		switch ext {
		case ".css":
			kind = "text/css; charset=utf-8"
		case ".js":
			kind = "text/javascript; charset=utf-8"
		case ".svg":
			kind = "image/svg+xml"
		}
		all[e.Name()] = asset{data: data, contentType: kind, path: "/assets/" + e.Name() + "?v=" + hex.EncodeToString(sum[:6])}
	}
	return all
}

// serve serves one to anybody: they are the same for all who run this program.
func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	found, ok := a[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", found.contentType)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(found.data) // a browser that left needs no answer
}
