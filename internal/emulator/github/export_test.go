package github

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"remote-agent/internal/emulator/platformapi"
)

// JSON web tokens for the tests of this package, which call the API themselves.

// JWT returns a token with which the App identifies itself, for tests that call
// the API themselves.
func (c *credentials) JWT() string {
	now := c.world.now()
	return SignJWT(c.key(), obj{"iat": now.Add(-time.Minute).Unix(), "exp": now.Add(9 * time.Minute).Unix(), "iss": itoa64(c.world.opts.App.ID)})
}

// SignJWT returns a JSON web token with any claims, signed with RS256.
func SignJWT(key *rsa.PrivateKey, claims map[string]any) string {
	part := base64.RawURLEncoding.EncodeToString
	text := part([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + part(platformapi.MustJSON(claims))
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		panic("github emulator: signing: " + err.Error())
	}
	return text + "." + part(signature)
}
