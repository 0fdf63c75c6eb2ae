package projectdb

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"modernc.org/sqlite"

	"remote-agent/internal/lists"
)

// restrict puts the authorizer on a connection.
func restrict(c any) error {
	r, ok := c.(sqlite.AuthorizerRegisterer)
	if !ok {
		return fmt.Errorf("a connection of type %T has no authorizer", c)
	}
	return r.RegisterAuthorizer(authorize)
}

// authorize allows a statement to read tables and to call harmless functions.
// Everything that is not named is denied: ATTACH, PRAGMA, transactions, writing,
// temporary tables, and what later versions of SQLite may add.
func authorize(action sqlite.AuthorizerActionCode, arg1, arg2, _, _ string) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthRead:
		if mayRead(strings.ToLower(arg1)) {
			return sqlite.AuthorizerOK
		}
	case sqlite.AuthFunction:
		if harmless[strings.ToLower(arg2)] {
			return sqlite.AuthorizerOK
		}
	default:
	}
	return sqlite.AuthorizerDeny
}

// mayRead decides about a table, a table-valued function, or, for a count(*)
// over it, the name of a subquery. The names that are refused are the virtual
// tables that are compiled in; tables of the project cannot have them.
func mayRead(name string) bool {
	switch name {
	case "sqlite_master", "sqlite_schema", "sqlite_sequence", "json_each", "json_tree":
		return true
	}
	domain, _, _ := strings.Cut(name, "_")
	return !reserved[domain]
}

// reserved are the first parts of names that belong to SQLite.
var reserved = lists.Words(`sqlite pragma json jsonb dbstat bytecode tables fts3 fts3tokenize fts4 fts4aux fts5 fts5vocab rtree geopoly vec vec0
	temp main completion fsdir generate series zipfile csv stmt memstat carray dbpage unionvtab swarmvtab`)

// harmless are functions that compute: they read nothing, change nothing, and
// their results are bounded by the limit on the length of a value.
var harmless = lists.Words(`abs changes char coalesce concat concat_ws format glob hex if ifnull iif instr length like likelihood likely lower ltrim
	max min nullif octet_length printf quote random replace round rtrim sign soundex substr substring trim typeof unhex unicode
	unistr unistr_quote unlikely upper
	avg count group_concat median percentile percentile_cont percentile_disc string_agg sum total
	cume_dist dense_rank first_value lag last_value lead nth_value ntile percent_rank rank row_number
	date datetime julianday strftime time timediff unixepoch current_date current_time current_timestamp
	acos acosh asin asinh atan atan2 atanh ceil ceiling cos cosh degrees exp floor ln log log10 log2 mod pi pow power radians
	sin sinh sqrt tan tanh trunc
	json jsonb json_array jsonb_array json_array_length json_error_position json_extract jsonb_extract json_insert jsonb_insert
	json_object jsonb_object json_patch jsonb_patch json_pretty json_quote json_remove jsonb_remove json_replace jsonb_replace
	json_set jsonb_set json_type json_valid json_group_array jsonb_group_array json_group_object jsonb_group_object -> ->>`)

// registerTrim replaces trim, ltrim and rtrim with two arguments. Those of SQLite
// take the product of the lengths in time, a minute for 32 KiB each, and cannot
// be interrupted.
func registerTrim(d *sqlite.Driver) error {
	var all error
	for name, f := range map[string]func(string, func(rune) bool) string{"trim": strings.TrimFunc, "ltrim": strings.TrimLeftFunc, "rtrim": strings.TrimRightFunc} {
		all = errors.Join(all, d.RegisterDeterministicScalarFunction(name, 2, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
			text, isText := asText(args[0])
			chars, isChars := asText(args[1])
			if !isText || !isChars {
				return nil, nil
			}
			cut := make(map[rune]bool)
			for _, r := range chars {
				cut[r] = true
			}
			return f(text, func(r rune) bool { return cut[r] }), nil
		}))
	}
	return all
}

// asText returns a value as SQLite makes text of it, and false for NULL.
func asText(v driver.Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case []byte:
		return string(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		s := strconv.FormatFloat(v, 'g', 15, 64)
		if !strings.ContainsAny(s, ".eIN") {
			s += ".0"
		}
		return s, true
	}
	return "", false
}
