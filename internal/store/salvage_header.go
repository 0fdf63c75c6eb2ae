package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"remote-agent/internal/fault"
	"remote-agent/internal/order"
)

// Types of b-tree pages (sqlite.org/fileformat2.html, section 1.6).
const (
	pageInteriorTable = 5
	pageLeafTable     = 13
)

// mendHeader puts right what the first page of a file needs so that SQLite opens it:
// the header, which is the same in all databases of this program but for sizes, and
// the root of the schema, which is found by its leaves. It returns what was mended.
func mendHeader(path string) (mended string, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // a copy in a folder of ours
	if err != nil {
		return "", unreadable(path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return "", unreadable(path, err)
	}
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(f, header); err != nil {
		return "", fault.New(fault.Damaged, "Nothing of the database can be read: the file ends within its header.")
	}
	size := pageSizeOf(header)
	if headerProblem(header) != nil {
		if size, err = guessPageSize(f, path+"-wal", info.Size()); err != nil {
			return "", err
		}
		mended = "the header"
	}
	// The size that the header tells is that of a file that was not cut off.
	fresh := freshHeader(size, info.Size())
	if mended != "" || int64(binary.BigEndian.Uint32(header[28:]))*int64(size) != info.Size() {
		if _, err := f.WriteAt(fresh, 0); err != nil {
			return "", unreadable(path, err)
		}
	}
	page := make([]byte, size)
	if _, err := f.ReadAt(page, 0); err != nil && !errors.Is(err, io.EOF) {
		return "", unreadable(path, err)
	}
	if kind := page[headerSize]; kind == pageInteriorTable || kind == pageLeafTable {
		return mended, nil
	}
	root, err := schemaRoot(f, size, info.Size())
	if err != nil || root == nil {
		return mended, err
	}
	if _, err := f.WriteAt(root, headerSize); err != nil {
		return "", unreadable(path, err)
	}
	return "the first page", nil
}

func freshHeader(pageSize int, fileSize int64) []byte {
	h := make([]byte, headerSize)
	copy(h, headerMagic)
	binary.BigEndian.PutUint16(h[16:], uint16(pageSize&0xffff|pageSize>>16)) //nolint:gosec // 65536 is written as 1
	h[18], h[19], h[21], h[22], h[23] = 2, 2, 64, 32, 32
	put := binary.BigEndian.PutUint32
	put(h[24:], 1)                                // change counter
	put(h[28:], uint32(fileSize/int64(pageSize))) //nolint:gosec // pages of a file
	put(h[40:], 1)                                // schema cookie
	put(h[44:], 4)                                // schema format
	put(h[56:], 1)                                // UTF-8
	put(h[92:], 1)                                // what the size is valid for
	put(h[96:], 3_045_000)                        // a version of SQLite
	return h
}

// guessPageSize finds the page size that the write-ahead log tells, or else the one
// at whose multiples most pages begin as pages do.
func guessPageSize(f io.ReaderAt, log string, fileSize int64) (int, error) {
	if wal, err := os.ReadFile(log); err == nil && len(wal) >= 32 { //nolint:gosec // a copy in a folder of ours
		if size := int(binary.BigEndian.Uint32(wal[8:])); size >= 512 && size <= 65536 && size&(size-1) == 0 {
			return size, nil
		}
	}
	var sizes []int
	var shares []float64
	for size := 65536; size >= 512; size /= 2 {
		sizes, shares = append(sizes, size), append(shares, pageShare(f, size, fileSize))
	}
	// Each page of a larger size is one of the smaller size too, so of those that are
	// about as good it is the smallest.
	best, most := 0, slices.Max(shares)
	for i, size := range sizes {
		if most > 0 && shares[i] >= 0.7*most {
			best = size
		}
	}
	if best == 0 {
		return 0, fault.New(fault.Damaged, "Nothing of the database can be read: no page of it can be recognized.")
	}
	return best, nil
}

// pageShare returns how many of the first pages of a size begin as b-tree pages do,
// from 0 to 1.
func pageShare(f io.ReaderAt, size int, fileSize int64) float64 {
	pages, good := 0, 0
	head := make([]byte, 8)
	for at := int64(size); at+8 <= fileSize && pages < 4096; at += int64(size) {
		if _, err := f.ReadAt(head, at); err != nil {
			break
		}
		pages++
		start := int(binary.BigEndian.Uint16(head[5:]))
		if slices.Contains([]byte{2, 5, 10, 13}, head[0]) && head[7] <= 60 && start >= 8 && start <= size {
			good++
		}
	}
	if good == 0 {
		return 0
	}
	return float64(good) / float64(pages)
}

// schemaRoot makes the content of the first page behind the header: the root of the
// table of the schema above the leaves that are found in the file. It is nil if there
// are none.
func schemaRoot(f io.ReaderAt, size int, fileSize int64) ([]byte, error) {
	type leaf struct {
		page uint32
		last uint64 // the largest rowid
	}
	var leaves []leaf
	page := make([]byte, size)
	for n := uint32(2); int64(n)*int64(size) <= fileSize; n++ {
		if _, err := f.ReadAt(page, int64(n-1)*int64(size)); err != nil {
			return nil, fmt.Errorf("read a page: %w", err)
		}
		if last, ok := schemaLeaf(page); ok {
			leaves = append(leaves, leaf{n, last})
		}
	}
	if len(leaves) == 0 {
		return nil, nil
	}
	order.By(leaves, func(a, b leaf) int { return int(a.last) - int(b.last) }) //nolint:gosec // a few hundred
	root := make([]byte, size)
	content := size
	for i, l := range leaves[:len(leaves)-1] {
		cell := binary.BigEndian.AppendUint32(nil, l.page)
		cell = appendVarint(cell, l.last)
		if content -= len(cell); content < headerSize+12+2*len(leaves) {
			return nil, nil // more than a page holds
		}
		copy(root[content:], cell)
		binary.BigEndian.PutUint16(root[headerSize+12+2*i:], uint16(content)) //nolint:gosec // within a page
	}
	h := root[headerSize:]
	h[0] = pageInteriorTable
	binary.BigEndian.PutUint16(h[3:], uint16(len(leaves)-1))  //nolint:gosec // as above
	binary.BigEndian.PutUint16(h[5:], uint16(content&0xffff)) //nolint:gosec // as above
	binary.BigEndian.PutUint32(h[8:], leaves[len(leaves)-1].page)
	return root[headerSize:], nil
}

// schemaLeaf reports whether a page is a leaf of the table sqlite_schema, and the
// rowid of its last row.
func schemaLeaf(page []byte) (last uint64, ok bool) {
	cells := int(binary.BigEndian.Uint16(page[3:]))
	if page[0] != pageLeafTable || cells == 0 || 8+2*cells > len(page) {
		return 0, false
	}
	for i := range cells {
		at := int(binary.BigEndian.Uint16(page[8+2*i:]))
		if at < 8 || at >= len(page) {
			return 0, false
		}
		rowid, isSchema := schemaCell(page[at:])
		if !isSchema || rowid <= last {
			return 0, false
		}
		last = rowid
	}
	return last, true
}

// schemaCell reads the rowid of a cell and reports whether its row is one of
// sqlite_schema: five columns, of which the first is a kind of object.
func schemaCell(cell []byte) (rowid uint64, ok bool) {
	_, n := readVarint(cell)
	rowid, m := readVarint(cell[n:])
	if n == 0 || m == 0 {
		return 0, false
	}
	record := cell[n+m:]
	length, at := readVarint(record)
	if at == 0 || length > uint64(len(record)) {
		return 0, false
	}
	var columns []uint64
	for at < int(length) { //nolint:gosec // within the page
		kind, n := readVarint(record[at:])
		if n == 0 {
			return 0, false
		}
		columns, at = append(columns, kind), at+n
	}
	if len(columns) != 5 || columns[0] < 13 || columns[0]%2 == 0 {
		return 0, false
	}
	size := int(columns[0]-13) / 2 //nolint:gosec // checked by the slice
	if size > 8 || at+size > len(record) {
		return 0, false
	}
	kinds := [][]byte{[]byte("table"), []byte("index"), []byte("view"), []byte("trigger")}
	return rowid, slices.ContainsFunc(kinds, func(k []byte) bool { return bytes.Equal(k, record[at:at+size]) })
}

// readVarint reads a variable-length integer of SQLite: seven bits a byte, the most
// significant first, all eight of the ninth. n is zero if b ends before.
func readVarint(b []byte) (v uint64, n int) {
	for i := range min(len(b), 9) {
		if i == 8 {
			return v<<8 | uint64(b[i]), 9
		}
		v = v<<7 | uint64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

func appendVarint(b []byte, v uint64) []byte {
	var digits []byte
	for {
		digits = append(digits, byte(v&0x7f))
		if v >>= 7; v == 0 {
			break
		}
	}
	for i, d := range slices.Backward(digits) {
		if i > 0 {
			d |= 0x80
		}
		b = append(b, d)
	}
	return b
}
