package redact

import "strings"

// maxUser bounds what of an address is looked at before its "@", in bytes.
const maxUser = 512

var (
	userByte     = bytesBut(" \t\r\n/:@\"'<>`\\")
	passwordByte = bytesBut(" \t\r\n/\"'<>`\\")
	sourceByte   = bytesBut(" \t\r\n/\"'`")
)

// bytesBut returns all bytes but those of a list.
func bytesBut(list string) *bytes {
	var set bytes
	for b := range set {
		set[b] = !strings.ContainsRune(list, rune(b)) || b >= 0x80
	}
	return &set
}

// addresses returns the rules for credentials in addresses, for tokens that have
// their anchor in the middle, and for users of curl.
func addresses() []rule {
	all := []rule{
		{anchor: "://", find: address},
		{anchor: ":", find: source},
		{anchor: " -u ", find: curlUser},
		{anchor: " -u", find: curlUser},
		{anchor: " --user ", find: curlUser},
		{anchor: "atlasv1.", find: terraform},
		{anchor: "_mmk", find: maxmind},
		{anchor: "eyJ", find: jwt},
	}
	for digit := '0'; digit <= '9'; digit++ {
		all = append(all,
			rule{anchor: string(digit) + ":", find: telegram},
			rule{anchor: string(digit) + "%3A", find: telegram},
			rule{anchor: string(digit) + "%3a", find: telegram},
			rule{anchor: string(digit) + "Q~", find: azure},
		)
	}
	return all
}

// address finds the password of an address, whatever its scheme, and a token that
// stands in the place of the user. A password may hold an unescaped "@": the last
// one before the path counts.
func address(s string, at int, whole bool) match {
	if at == 0 || !alnumByte[s[at-1]] {
		return match{}
	}
	from := at + len("://")
	rest := s[from:min(len(s), from+maxUser)]
	n := run(rest, userByte)
	if n == len(rest) {
		return match{span: span{start: from}, open: !whole && from+n == len(s)}
	}
	user := rest[:n]
	switch rest[n] {
	case '@':
		if len(user) >= 20 && mixed(user) {
			return match{span: span{from, from + n}}
		}
	case ':':
		password := rest[n+1:]
		m := run(password, passwordByte)
		last := strings.LastIndexByte(password[:m], '@')
		if !whole && from+n+1+m == len(s) {
			return match{span: span{start: from + n + 1}, open: true}
		}
		if last <= 0 || reference(password[:last]) || port(password[:last]) || sample(user, password[:last]) {
			return match{}
		}
		return match{span: span{from + n + 1, from + n + 1 + last}}
	}
	return match{}
}

// sample reports whether an address only shows how one is written.
func sample(user, password string) bool {
	return (strings.EqualFold(user, "user") || strings.EqualFold(user, "username")) &&
		(strings.EqualFold(password, "password") || strings.EqualFold(password, "pass"))
}

// port reports whether what looks like a password is a port and a query.
func port(s string) bool {
	n := run(s, digitByte)
	return n > 0 && n <= 5 && n < len(s) && (s[n] == '?' || s[n] == '#')
}

// source finds the password of a data source name of the MySQL driver,
// user:password@tcp(host).
func source(s string, at int, whole bool) match {
	from := at + 1
	if at == 0 || !nameByte[s[at-1]] {
		return match{}
	}
	n := run(s[from:min(len(s), from+128)], sourceByte)
	if !whole && from+n == len(s) && n < 128 && n > 0 {
		return match{span: span{start: from}, open: true}
	}
	for _, mark := range []string{"@tcp(", "@unix("} {
		if i := strings.Index(s[from:from+n], mark); i > 0 && !reference(s[from:from+i]) {
			return match{span: span{from, from + i}}
		}
	}
	return match{}
}

// curlUser finds the password of curl -u user:password.
func curlUser(s string, at int, whole bool) match {
	line := s[max(0, at-400):at]
	if i := strings.LastIndexByte(line, '\n'); i >= 0 && !strings.HasSuffix(strings.TrimRight(line[:i], " \r"), "\\") {
		line = line[i+1:]
	}
	if !strings.Contains(line, "curl") {
		return match{}
	}
	from := at + len(" -u")
	if strings.HasPrefix(s[at:], " --user") {
		from = at + len(" --user")
	}
	from += run(s[from:], blankByte)
	from += min(1, run(s[from:], stringByte))
	n := run(s[from:min(len(s), from+maxUser)], passwordByte)
	if !whole && from+n == len(s) {
		return match{span: span{start: from}, open: true}
	}
	user, password, ok := strings.Cut(s[from:from+n], ":")
	if !ok || password == "" || reference(password) || strings.HasPrefix(user, "$") && strings.HasPrefix(password, "$") {
		return match{}
	}
	return match{span: span{from + len(user) + 1, from + n}}
}

// telegram finds a token of the Bot API (core.telegram.org/bots): digits, a colon
// and 35 characters. In an address it follows the letters "bot".
func telegram(s string, at int, whole bool) match {
	start := at + 1 - runBack(s[:at+1], digitByte, 16)
	if at+1-start < 8 {
		return match{}
	}
	from := at + 2
	if s[at+1] == '%' {
		from = at + 4
	}
	n := run(s[from:], tokenByte)
	if n < 35 {
		return match{span: span{start: start}, open: !whole && from+n == len(s)}
	}
	return match{span: span{start, from + n}}
}

// jwt finds a JSON Web Token, signed (RFC 7519) or encrypted (RFC 7516): three or
// five parts of base64 with dots between, of which the first is JSON.
func jwt(s string, at int, whole bool) match {
	if !begins(s, at) {
		return match{}
	}
	end := at
	for part := range 5 {
		n := run(s[end:], tokenByte)
		if part < 2 && n < 8 && end+n < len(s) && (part != 1 || n != 0 || s[end] != '.') { // a JWE without a key
			return match{}
		}
		end += n
		switch {
		case end == len(s) && part < 2:
			return match{span: span{start: at}, open: !whole}
		case end == len(s) || s[end] != '.':
			if part < 2 {
				return match{}
			}
			return match{span: span{at, end}}
		case part == 4:
		default:
			end++
		}
	}
	return match{span: span{at, end}}
}

// azure finds a client secret of Entra ID (gitleaks azure-ad-client-secret): three
// characters, a digit, "Q~" and 31 to 34 more.
func azure(s string, at int, whole bool) match {
	before := runBack(s[:at], entraByte, 4)
	if before < 3 {
		return match{}
	}
	from := at + 3
	n := run(s[from:], entraByte)
	if n < 31 {
		return match{span: span{start: at - 3}, open: !whole && from+n == len(s)}
	}
	return match{span: span{at - 3, from + n}}
}

// terraform finds a token of HCP Terraform (gitleaks hashicorp-tf-api-token): 14
// characters, ".atlasv1." and about 67 more.
func terraform(s string, at int, whole bool) match {
	if at < 15 || s[at-1] != '.' || runBack(s[:at-1], alnumByte, 14) < 14 {
		return match{}
	}
	from := at + len("atlasv1.")
	n := run(s[from:], paddedByte)
	if n < 40 {
		return match{span: span{start: at - 15}, open: !whole && from+n == len(s)}
	}
	return match{span: span{at - 15, from + n}}
}

// maxmind finds a license key of MaxMind (gitleaks maxmind-license-key), which ends
// with its anchor.
func maxmind(s string, at int, _ bool) match {
	if runBack(s[:at], nameByte, 37) != 36 || s[at-30] != '_' {
		return match{}
	}
	return match{span: span{at - 36, at + len("_mmk")}}
}

// bareKeys finds secret access keys of AWS (docs.aws.amazon.com, access keys)
// that stand for themselves: exactly 40 characters of base64 that are as mixed as
// random ones.
func bareKeys(s string) (found []span) {
	const length = 40
	for at := length - 1; at < len(s); {
		if !stdByte[s[at]] {
			at += length
			continue
		}
		start := at + 1 - runBack(s[:at+1], stdByte, length+1)
		end := at + run(s[at:min(len(s), start+length+1)], stdByte)
		if end-start == length && bareKey(s[start:end]) && (end == len(s) || s[end] != '=') && !partOfWord(s, start, end) {
			found = append(found, span{start, end})
		}
		at = end + length
	}
	return found
}

// partOfWord reports whether a run of base64 belongs to something longer, such as a
// path or an address.
func partOfWord(s string, start, end int) bool {
	return start > 0 && joinByte[s[start-1]] || end+1 < len(s) && joinByte[s[end]] && alnumByte[s[end+1]]
}

func bareKey(s string) bool {
	return has(s, digitByte) && has(s, lowerByte) && has(s, upperByte) && entropy(s) >= 4.5
}
