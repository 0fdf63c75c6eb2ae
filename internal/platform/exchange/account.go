package exchange

import (
	"crypto/sha256"
	"encoding/hex"
)

// AccountOf names whoever uses a credential, for Budget.Account: the same in all
// processes, and nothing that the credential could be found by.
func AccountOf(credential string) string {
	sum := sha256.Sum256([]byte("account of " + credential))
	return hex.EncodeToString(sum[:12])
}
