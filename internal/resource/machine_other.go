//go:build !unix

package resource

// Descriptors is not known here.
func Descriptors() (open, limit int, ok bool) { return 0, 0, false }

// DiskFree is not known here.
func DiskFree(string) (bytes int64, files, ok bool) { return 0, false, false }

// DiskSpace returns zero: it is not known here.
func DiskSpace(string) (free, total int64) { return 0, 0 }
