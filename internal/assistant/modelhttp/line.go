package modelhttp

import (
	"bufio"
	"errors"
)

// ReadLine reads a line of a stream with the end of the line, at most limit bytes of
// it: a longer one is ErrTooLong. At the end of the stream it returns what is
// left, with the error of the stream. The line holds until the next read.
func ReadLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > limit {
			return nil, ErrTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			if line == nil {
				return piece, err
			}
			return append(line, piece...), err
		}
		line = append(line, piece...)
	}
}
