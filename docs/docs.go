// Package docs holds the description of the HTTP API that the program serves.
package docs

import _ "embed"

// OpenAPI is openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte
