package commandfile

import (
	"fmt"
	"slices"
	"strings"

	"remote-agent/internal/fault"
	"remote-agent/internal/pattern"
)

// MaxExpanded is the longest text in bytes that Expand makes.
const MaxExpanded = 1 << 20

// Expand puts what a person typed, and a plan, into the body of a command:
//
//	$1 … $9      one of args, or nothing if there are fewer
//	$ARGUMENTS   rest: all that was typed behind the command's name
//	$PLAN        plan
//	$$           one dollar sign, so that $$1 shows as $1
//
// It goes over the body once; what is put in is never looked at again, whatever
// it contains. A number of more digits, such as $10, is not $1 followed by 0; it,
// $0 and unknown names in capitals stay as they are and are named in a warning.
// Other uses of the dollar sign, as in $path, ${x} or $(x), stay without one. So
// does !`a program`, which other tools run and which is named in a warning.
// Arguments and a plan that no placeholder takes are put behind the text: nothing
// that a person typed is lost, and whoever runs a command with a plan runs that
// plan. A text above MaxExpanded bytes is an error of kind Invalid.
func Expand(body string, args []string, rest, plan string) (text string, warnings []string, err error) {
	e := expansion{args: args, rest: rest, plan: plan}
	if program := inline.FindStringSubmatch(body); program != nil {
		e.warn(fmt.Sprintf("!`%s` was not run: the assistant gets it as text.", clip(program[1])))
	}
	for {
		before, after, found := strings.Cut(body, "$")
		e.out.WriteString(before)
		if !found {
			break
		}
		body = after[e.placeholder(after):]
		if e.out.Len() > MaxExpanded {
			return "", nil, fault.Newf(fault.Invalid, "With these arguments, the command is longer than %d KiB.", MaxExpanded>>10)
		}
	}
	if plan != "" && !e.usedPlan {
		e.out.WriteString("\n\nPlan:\n\n" + plan)
	}
	if strings.TrimSpace(rest) != "" && !e.usedArgs {
		e.out.WriteString("\n\nArguments: " + rest)
	}
	if e.out.Len() > MaxExpanded {
		return "", nil, fault.Newf(fault.Invalid, "With these arguments, the command is longer than %d KiB.", MaxExpanded>>10)
	}
	return e.out.String(), e.warnings, nil
}

// inline finds a program whose output other tools put in its place.
var inline = pattern.Lazy("(?:^|\\s)!`([^`\n]+)`")

type expansion struct {
	args       []string
	rest, plan string
	out        strings.Builder
	warnings   []string
	usedArgs   bool
	usedPlan   bool
}

// placeholder writes what stands for a dollar sign and the text behind it, and
// returns how much of that text is used up.
func (e *expansion) placeholder(after string) int {
	if after == "" {
		e.out.WriteByte('$')
		return 0
	}
	switch c := after[0]; {
	case c == '$':
		e.out.WriteByte('$')
		return 1
	case c >= '0' && c <= '9':
		n := span(after, isDigit)
		e.number(after[:n])
		return n
	case c >= 'A' && c <= 'Z':
		n := span(after, isNameByte)
		e.name(after[:n])
		return n
	}
	e.out.WriteByte('$')
	return 0
}

func (e *expansion) number(digits string) {
	if len(digits) > 1 || digits == "0" {
		e.out.WriteString("$" + digits)
		e.warn(fmt.Sprintf("$%s is not a placeholder (use $1 to $9); it was left unchanged.", clip(digits)))
		return
	}
	e.usedArgs = true
	if i := int(digits[0] - '1'); i < len(e.args) {
		e.out.WriteString(e.args[i])
		return
	}
	e.warn(fmt.Sprintf("The command uses $%s, which you did not give.", digits))
}

func (e *expansion) name(name string) {
	switch name {
	case "ARGUMENTS":
		e.usedArgs = true
		e.out.WriteString(e.rest)
	case "PLAN":
		e.usedPlan = true
		e.out.WriteString(e.plan)
		if e.plan == "" {
			e.warn("The command uses $PLAN, but there is no plan.")
		}
	default:
		e.out.WriteString("$" + name)
		if strings.ToUpper(name) == name {
			e.warn(fmt.Sprintf("$%s is not a known placeholder; it was left unchanged.", clip(name)))
		}
	}
}

// warn adds a warning once. A body can hold any number of placeholders.
func (e *expansion) warn(text string) {
	if len(e.warnings) < 20 && !slices.Contains(e.warnings, text) {
		e.warnings = append(e.warnings, text)
	}
}

func span(s string, is func(byte) bool) int {
	n := 0
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isNameByte(c byte) bool {
	return c == '_' || isDigit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')
}
