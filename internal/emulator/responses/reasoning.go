package responses

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// sealKey stands for the provider's secret. It is the same for every server, as
// that of an API is before and after a restart, so nothing has to be remembered.
const sealKey = "emulated responses api"

// seal returns the encrypted content of a reasoning item.
func seal(model, id, summary string) string {
	h := hmac.New(sha256.New, []byte(sealKey))
	content, err := json.Marshal([]string{model, id, summary})
	if err != nil {
		return ""
	}
	_, _ = h.Write(content)
	return base64.StdEncoding.EncodeToString(append(content, h.Sum(nil)...))
}

// checkReasoning refuses encrypted content that this package did not make, or
// made for another model, and a summary that is not that of the content. An item
// without encrypted content says nothing to the model and is taken.
func checkReasoning(model string, i Item) *APIError {
	if i.EncryptedContent == nil || *i.EncryptedContent == "" {
		return nil
	}
	refused := coded("invalid_encrypted_content", "", "The encrypted content %.12s... could not be verified. Reason: Encrypted content could not be decrypted or parsed.", *i.EncryptedContent)
	raw, err := base64.StdEncoding.DecodeString(*i.EncryptedContent)
	if err != nil || len(raw) < sha256.Size {
		return refused
	}
	var content [3]string
	if json.Unmarshal(raw[:len(raw)-sha256.Size], &content) != nil {
		return refused
	}
	var summary strings.Builder
	for _, p := range i.Summary {
		if p.Text != nil {
			_, _ = summary.WriteString(*p.Text) // a builder takes everything
		}
	}
	if !hmac.Equal([]byte(*i.EncryptedContent), []byte(seal(model, content[1], summary.String()))) {
		return refused
	}
	return nil
}
