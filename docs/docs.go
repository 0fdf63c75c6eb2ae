// Package docs holds the manual and the description of the HTTP API, which the program
// serves.
package docs

import (
	"embed"
	"sync"

	"github.com/klauspost/compress/s2"
)

// The program has it compressed: "make generate" packs it, and a test compares both.
//
//go:embed openapi.yaml.s2
var packed []byte

// OpenAPI returns openapi.yaml. It is not to be changed.
var OpenAPI = sync.OnceValue(func() []byte {
	text, err := s2.Decode(nil, packed)
	if err != nil {
		panic("openapi.yaml.s2: " + err.Error()) // a test reads it
	}
	return text
})

// Manual are the pages for those who use and operate the program; those for who builds it
// are in the repository only.
//
//go:embed api.md assistants.md commands.md github.md operations.md reliability.md security.md slack.md telegram.md upgrading.md
var Manual embed.FS
