package app

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"remote-agent/internal/config"
	"remote-agent/internal/files"
	"remote-agent/internal/store"
	"remote-agent/internal/transcribe"
)

const (
	// filesFolder is where the bytes of files are, below DATA_DIR.
	filesFolder = "files"

	tidyEvery = time.Hour
)

// newFiles returns the files of a database, and has them deleted with the messages that
// have them.
func newFiles(cfg config.Config, s *store.Store, log *slog.Logger) *files.Store {
	kept := files.NewStore(s, filepath.Join(cfg.DataDir, filesFolder), log)
	s.AfterErasing(kept.AfterErasing)
	return kept
}

// buildFiles builds what reads pictures, documents and recordings.
func (d *daemon) buildFiles() error {
	if c := d.config.Transcribe; c.Configured() {
		client, err := transcribe.New(transcribe.Config{BaseURL: c.BaseURL, APIKey: c.APIKey.Reveal(), Model: c.Model})
		if err != nil {
			return err
		}
		d.transcriber = client
		d.intake = files.NewIntake(d.files, client, d.log)
		return nil
	}
	d.intake = files.NewIntake(d.files, nil, d.log)
	return nil
}

// tidyFiles removes now and then what crashes have left of files, and such as no
// message came to have.
func (c caretaker) tidyFiles(ctx context.Context) {
	for wait := time.Minute; sleep(ctx, wait); wait = tidyEvery { // not while everybody starts
		err := c.files.Tidy(ctx)
		if err == nil {
			_, err = c.files.Sweep(ctx)
		}
		if err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "could not tidy the files that people attached", "err", err)
		}
	}
}
