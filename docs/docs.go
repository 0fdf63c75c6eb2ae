// Package docs holds the manual and the description of the HTTP API, which the program
// serves.
package docs

import "embed"

// OpenAPI is openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte

// Manual are the pages for those who use and operate the program; those for who builds it
// are in the repository only.
//
//go:embed api.md assistants.md commands.md github.md operations.md reliability.md security.md slack.md telegram.md upgrading.md
var Manual embed.FS
