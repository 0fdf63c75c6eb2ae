package recollect

import (
	"context"
	"strconv"
	"strings"
	"time"

	"remote-agent/internal/fault"
	"remote-agent/internal/memory"
	"remote-agent/internal/pattern"
	"remote-agent/internal/sessions"
)

// storePatience is how long whoever remembers or searches waits for an embedding.
// Without one the memory is embedded later.
const storePatience = 500 * time.Millisecond

// asInFile has a sentence name a secret as a file does.
var asInFile = strings.NewReplacer(" is ", ": ", " IS ", ": ", "api key", "api_key", "API key", "API_KEY", "API KEY", "API_KEY")

// foreignPassword is "password is" in other languages.
var foreignPassword = pattern.Lazy(`(?i)(?:passwort|kennwort|mot de passe|contraseña|senha|wachtwoord|hasło|lösenord|пароль|密码|密碼|口令|パスワード|暗証番号|비밀번호|รหัสผ่าน)` +
	`(?:\s*[:：=—]\s*|\s+(?:ist|est|es|é|is|to|är)\s+|\s*(?:是|は|는|คือ)\s*)`)

// learnable checks a text that somebody wants to have remembered.
func (s *Service) learnable(text string) (string, error) {
	text, err := memory.CleanText(memory.Visible(text))
	if err != nil {
		return "", err
	}
	said := asInFile.Replace(foreignPassword.ReplaceAllString(text, "password: "))
	if s.config.Redact(text) != text || s.config.Redact(said) != said {
		return "", fault.New(fault.Invalid, "That contains a password, key or token, so it was not saved.")
	}
	return text, nil
}

// Remember keeps a fact that was stated in an entry: its text, scope, category,
// origin and codebase; the rest is filled in. A second time it changes nothing. A
// text that cannot be remembered is a fault.Invalid that says why.
func (s *Service) Remember(ctx context.Context, entry sessions.Entry, f memory.Fact) (out memory.Outcome, err error) {
	if f.Text, err = s.learnable(f.Text); err != nil {
		return out, err
	}
	f.RunID, f.Key, f.Now = entry.ID, entry.ID, s.config.Now()
	f.Embedding = s.Embed(ctx, f.Text)
	f.Judged = s.config.Judge(ctx, entry, f)
	err = s.config.Storage.InTx(ctx, func(tx Tx) error {
		var err error
		out, err = tx.UpsertFact(ctx, f)
		return err
	})
	if err == nil && f.Embedding.IsZero() {
		s.later()
	}
	return out, err
}

// Correct gives the memory of a number another text, stated in an entry.
func (s *Service) Correct(ctx context.Context, entry sessions.Entry, number int64, f memory.Fact) (out memory.Outcome, err error) {
	if f.Text, err = s.learnable(f.Text); err != nil {
		return out, err
	}
	f.RunID, f.Key, f.Now = entry.ID, entry.ID, s.config.Now()
	f.Embedding = s.Embed(ctx, f.Text)
	err = s.config.Storage.InTx(ctx, func(tx Tx) error {
		var err error
		out, err = tx.CorrectFact(ctx, number, f)
		return err
	})
	if f.Embedding.IsZero() {
		s.later()
	}
	return out, err
}

// Forget deletes the memory of a number of a person.
func (s *Service) Forget(ctx context.Context, person string, number int64) error {
	return s.config.Storage.InTx(ctx, func(tx Tx) error {
		if _, err := tx.ForgetMemory(ctx, person, number); err != nil {
			return err
		}
		return tx.Audit(ctx, sessions.AuditEntry{Actor: person, Action: "memory.forget", Target: strconv.FormatInt(number, 10)})
	})
}

// Embed returns the vector of a text that a person waits for; zero if it takes too
// long, or there are no vectors.
func (s *Service) Embed(ctx context.Context, text string) memory.Embedding {
	return s.embed(ctx, text, storePatience)
}
