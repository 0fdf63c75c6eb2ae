package redact_test

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"

	"remote-agent/internal/redact"
)

// example is a text with a credential in it.
type example struct {
	name   string
	text   string
	secret []string // what must not be left of it, not even in pieces
}

// Alphabets of tokens, as their issuers publish them.
const (
	lowers = "abcdefghijklmnopqrstuvwxyz"
	uppers = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
	hexes  = digits + "abcdef"
	alnum  = lowers + uppers + digits
	dashed = alnum + "-_"
	std    = alnum + "+/"
)

// issued is one kind of token: its parts are written between commas so that no
// scanner takes this file for a leak, and the body is made up.
type issued struct {
	name, prefix, letters string
	length                int
}

// tokens are the kinds of tokens with the lengths that their issuers document.
var tokens = []issued{
	{"github personal", "gh,p_", alnum, 36}, {"github oauth", "gh,o_", alnum, 36}, {"github user", "gh,u_", alnum, 36},
	{"github server", "gh,s_", alnum, 36}, {"github refresh", "gh,r_", alnum, 76}, {"github fine-grained", "github,_pat_", alnum + "_", 82},
	{"gitlab personal", "gl,pat-", dashed, 20}, {"gitlab deploy", "gl,dt-", dashed, 20}, {"gitlab job", "gl,cbt-64_", dashed, 20},
	{"gitlab trigger", "gl,ptt-", hexes, 40}, {"gitlab feed", "gl,ft-", dashed, 20}, {"gitlab mail", "gl,imt-", dashed, 25},
	{"gitlab agent", "gl,agent-", dashed, 50}, {"gitlab oauth", "gl,oas-", dashed, 64}, {"gitlab runner", "gl,rt-", dashed, 20},
	{"gitlab scim", "gl,soat-", dashed, 20}, {"gitlab flags", "gl,ffct-", dashed, 20}, {"gitlab registration", "GR13,48941", dashed, 20},
	{"atlassian api", "ATA,TT3xFf", dashed, 180}, {"bitbucket app", "ATB,B", alnum, 32}, {"npm", "np,m_", alnum, 36},
	{"pypi", "pyp,i-AgEIcHlwaS5vcmc", dashed, 120}, {"rubygems", "ruby,gems_", hexes, 48}, {"crates", "ci,o", alnum, 32},
	{"docker hub", "dckr,_pat_", dashed, 27}, {"docker org", "dckr,_oat_", dashed, 32}, {"artifactory", "AK,Cp", alnum, 69},
	{"sourcegraph", "sg,p_local_", hexes, 40}, {"sonar", "sq,u_", hexes, 40}, {"circleci", "CCI,PAT_", alnum, 50}, {"buildkite", "bk,ua_", hexes, 40},
	{"openai", "s,k-", alnum, 48}, {"openai project", "s,k-proj-", dashed, 120}, {"openai service", "s,k-svcacct-", dashed, 120}, {"openai admin", "s,k-admin-", dashed, 100},
	{"anthropic", "s,k-ant-api03-", dashed, 95}, {"anthropic admin", "s,k-ant-admin01-", dashed, 95}, {"anthropic oauth", "s,k-ant-oat01-", dashed, 95},
	{"openrouter", "s,k-or-v1-", hexes, 64}, {"deepseek", "s,k-", hexes, 32}, {"small letters", "s,k-", lowers, 26}, {"huggingface", "h,f_", lowers + uppers, 34}, {"huggingface org", "api,_org_", lowers + uppers, 34},
	{"groq", "gs,k_", alnum, 52}, {"google api", "AI,zaSy", dashed, 33}, {"xai", "xa,i-", alnum, 80}, {"perplexity", "ppl,x-", alnum, 48}, {"replicate", "r,8_", alnum, 37},
	{"nvidia", "nv,api-", dashed, 64}, {"cerebras", "cs,k-", lowers + digits, 48}, {"pinecone", "pc,sk_", alnum + "_", 68}, {"langsmith", "lsv2,_pt_", hexes, 32}, {"tavily", "tv,ly-dev-", alnum, 32},
	{"together", "tg,p_v1_", dashed, 43}, {"e2b", "e2,b_", hexes, 40}, {"voyage", "p,a-", dashed, 43},
	{"aws key", "AK,IA", uppers + "234567", 16}, {"aws session key", "AS,IA", uppers + "234567", 16}, {"aws bedrock", "AB,SKQmVkcm9ja0FQSUtleS", std, 110},
	{"google oauth", "ya,29.", dashed, 120}, {"google client secret", "GOC,SPX-", dashed, 28}, {"google refresh", "1/,/0", dashed, 60}, {"google hmac", "GO,OG1E", uppers + digits, 56},
	{"digitalocean", "do,p_v1_", hexes, 64}, {"digitalocean oauth", "do,o_v1_", hexes, 64}, {"alibaba", "LT,AI5t", alnum, 20}, {"tencent", "AK,ID", alnum, 32},
	{"heroku", "HR,KU-AA", dashed, 58}, {"fly", "fo,1_", dashed, 43}, {"fly macaroon", "fm,2_", std, 120}, {"vercel", "vc,p_", alnum, 56}, {"netlify", "nf,p_", alnum, 36},
	{"cloudflare", "cf,ut_", dashed, 48}, {"supabase", "sb,_secret_", dashed, 31}, {"supabase access", "sb,p_", hexes, 40}, {"planetscale", "pscale,_tkn_", dashed, 43}, {"planetscale password", "pscale,_pw_", dashed, 43},
	{"neon", "na,pi_", lowers + digits, 64}, {"databricks", "da,pi", hexes, 32}, {"tailscale", "ts,key-auth-k", alnum, 40},
	{"vault service", "hv,s.", dashed, 95}, {"vault batch", "hv,b.", dashed, 140}, {"doppler", "dp,.pt.", alnum, 43}, {"1password service", "ops,_eyJ", alnum, 260},
	{"age", "AGE-SECRET,-KEY-1", uppers + digits, 58}, {"openshift", "sha,256~", dashed, 43},
	{"stripe live", "sk,_live_", alnum, 24}, {"stripe long", "sk,_live_", alnum, 99}, {"stripe test", "sk,_test_", alnum, 24}, {"stripe restricted", "rk,_live_", alnum, 99},
	{"stripe webhook", "wh,sec_", alnum, 32}, {"square", "sq0,atp-", dashed, 22}, {"square secret", "sq0,csp-", dashed, 43}, {"shopify", "shp,at_", hexes, 32}, {"shopify shared", "shp,ss_", hexes, 32},
	{"flutterwave", "FLW,SECK_TEST-", hexes, 32}, {"razorpay", "rzp,_live_", alnum, 14}, {"duffel", "duffel,_live_", dashed, 43}, {"easypost", "EZ,AK", alnum, 54}, {"shippo", "shippo,_live_", hexes, 40},
	{"slack bot", "xo,xb-123456789012-1234567890123-", alnum, 24}, {"slack user", "xo,xp-123456789012-123456789012-123456789012-", hexes, 32}, {"slack app", "xa,pp-1-A0123456789-1234567890123-", hexes, 64},
	{"slack refresh", "xo,xe-1-", alnum, 146}, {"slack config", "xo,xe.xoxp-1-", alnum, 163}, {"slack browser", "xo,xc-123456789012-", hexes, 64},
	{"sendgrid", "S,G.", dashed, 66}, {"brevo", "xkey,sib-", hexes, 81}, {"mailgun", "ke,y-", hexes, 32}, {"resend", "r,e_", alnum, 32}, {"twilio", "S,K", hexes, 32},
	{"notion", "nt,n_", alnum, 46}, {"notion old", "sec,ret_", alnum, 43}, {"linear", "lin,_api_", alnum, 40}, {"figma", "fi,gd_", dashed, 40}, {"postman", "PM,AK-", hexes, 59},
	{"grafana service", "gl,sa_", alnum, 41}, {"grafana cloud", "gl,c_eyJ", alnum, 100}, {"dynatrace", "dt0,c01.", uppers + digits, 88}, {"new relic", "NR,AK-", uppers + digits, 27}, {"sentry", "sn,tryu_", hexes, 64},
	{"posthog", "ph,x_", alnum, 43}, {"octopus", "AP,I-", uppers + digits, 26}, {"pulumi", "pu,l-", hexes, 40}, {"prefect", "pn,u_", alnum, 36}, {"infracost", "ic,o-", alnum, 32}, {"readme", "rd,me_", lowers + digits, 70},
	{"frame.io", "fi,o-u-", dashed, 64}, {"typeform", "tf,p_", dashed, 59}, {"scalingo", "tk,-us-", dashed, 48}, {"contentful", "CF,PAT-", dashed, 43}, {"facebook", "EA,AC", alnum, 150}, {"snyk", "snyk,_uat.", dashed, 60},
	{"own api", "ra,k_ab12cd34ef_", lowers + digits, 52},
}

// maker makes up the bodies of tokens, the same in every run.
type maker struct{ rand *rand.Rand }

func (m maker) text(letters string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[m.rand.IntN(len(letters))]
	}
	if letters == lowers || letters == hexes || n < 4 {
		return string(b)
	}
	for i, must := range []string{lowers, uppers, digits} { // what random text of this length nearly always has
		if strings.ContainsAny(letters, must) {
			b[i] = intersect(letters, must)[m.rand.IntN(len(intersect(letters, must)))]
		}
	}
	b[n-1] = b[0] // no sign at the end, which sentences end with
	return string(b)
}

func intersect(a, b string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(b, r) {
			return r
		}
		return -1
	}, a)
}

// contexts are where tokens are met.
var contexts = []string{
	"%s", "the key is %s, use it", `{"key":"%s"}`, "`%s`", "export X=%s\n", "https://example.com/a?b=%s&c=d",
	`line\n%s\nline`, "a,%s,b", "<b>%s</b>", "curl -H 'X-Api: %s' x", "%s.", "日本語%s日本語",
}

// configured is what the operator has set.
const configured = "zK9#very+plain/horse&staple=77"

// corpus returns all examples, at least 300.
func corpus() []example {
	m := maker{rand: rand.New(rand.NewPCG(13, 7))}
	var all []example
	add := func(name, format string, secret ...string) {
		args := make([]any, len(secret))
		for i, s := range secret {
			args[i] = s
		}
		all = append(all, example{name: name, text: fmt.Sprintf(format, args...), secret: secret})
	}
	for i, k := range tokens {
		prefix := strings.ReplaceAll(k.prefix, ",", "")
		token := m.text(k.letters, k.length)
		add(k.name, strings.Replace(contexts[i%len(contexts)], "%s", prefix+"%s", 1), token)
	}
	all = append(all, structured(m)...)
	all = append(all, namedValues(m)...)
	all = append(all, blocksOfKeys(m)...)
	all = append(all, encodedForms()...)
	all = append(all, splitByHidden(m)...)
	return all
}

func structured(m maker) []example {
	var all []example
	add := func(name, before, secret, after string) {
		all = append(all, example{name: name, text: before + secret + after, secret: []string{secret}})
	}
	jwt := "eyJ" + m.text(alnum, 33) + ".eyJ" + m.text(alnum, 60) + "."
	add("jwt", "cookie "+"", jwt+m.text(dashed, 43), " end")
	add("jwt without signature", "<", jwt, ">")
	add("jwe", "", "eyJ"+m.text(alnum, 40)+".."+m.text(alnum, 16)+"."+m.text(alnum, 60)+"."+m.text(alnum, 22), "")
	for i, context := range []string{"%s", "https://api.telegram.org/bot%s/getMe", "TOKEN=%s;", "bot%%3A%s"} {
		digit, body := m.text("123456789", 8+i%3), "AA"+m.text(dashed, 33)
		before, after, _ := strings.Cut(context, "%s")
		add("telegram "+context, before+digit+":", body, after)
	}
	add("telegram escaped", "bot1234567890%3A", "AA"+m.text(dashed, 33), "/getMe")
	for _, u := range []string{"postgres://bot:%s@db:5432/bot", "redis://:%s@cache/0", "https://bob:%s@git.example.com/a.git", "amqp://a:%s@b", "mongodb+srv://u:%s@c.mongodb.net/x", "ftp://me:%s@h"} {
		before, after, _ := strings.Cut(u, "%s")
		add("address "+before, before, m.text(alnum, 12), after)
		add("address with signs "+before, "see "+before, m.text(alnum, 5)+"@#"+m.text(alnum, 5), after+" for it")
	}
	add("token as user", "git clone https://", m.text(hexes, 40), "@git.example.com/a.git")
	add("mysql dsn", "root:", m.text(alnum, 10), "@tcp(127.0.0.1:3306)/db")
	add("curl user", "curl -s -u admin:", m.text(alnum, 10), " https://h")
	add("curl user quoted", "curl --user 'admin:", m.text(alnum, 10), "' https://h")
	for _, u := range []string{
		"https://hooks.slack.com/services/", "https://hooks.slack.com/workflows/T01234567/A01234567/", "https://hooks.slack.com/triggers/T01234567/",
		"https://discord.com/api/webhooks/123456789012345678/", "https://discordapp.com/api/webhooks/1234567890123456789/",
		"https://x.webhook.office.com/webhookb2/", "https://hooks.zapier.com/hooks/catch/", "https://open.feishu.cn/open-apis/bot/v2/hook/",
	} {
		body := m.text(alnum, 68)
		switch {
		case strings.HasSuffix(u, "services/"):
			body = "T" + m.text(uppers+digits, 10) + "/B" + m.text(uppers+digits, 10) + "/" + m.text(alnum, 24)
		case strings.Contains(u, "feishu"), strings.Contains(u, "office"):
			body = uuid(m)
		}
		add("webhook "+u, "post to "+u, body, " now")
	}
	basic := base64.StdEncoding.EncodeToString([]byte("aladdin:" + m.text(alnum, 14)))
	for _, b := range []string{"Authorization: Basic ", "authorization: basic ", `"Authorization": "Basic `, "-H 'Proxy-Authorization: Basic "} {
		add("basic "+b, b, basic, "\r\n")
	}
	for _, b := range []string{"Authorization: Bearer ", "bearer ", "Authorization: token ", "Authorization: ApiKey ", "Authorization: ", `headers: {"Authorization": "`} {
		add("authorization "+b, b, m.text(alnum, 24), "\n")
	}
	add("azure client", "id ", m.text(alnum, 3)+"8Q~"+m.text(dashed, 34), " end")
	add("terraform cloud", "token ", m.text(alnum, 14)+".atlasv1."+m.text(dashed, 67), "")
	add("maxmind", "key ", m.text(alnum, 6)+"_"+m.text(alnum, 29)+"_mmk", "")
	add("1password key", "key ", "A3-"+m.text(uppers+digits, 6)+"-"+m.text(uppers+digits, 11)+"-"+m.text(uppers+digits, 5)+"-"+m.text(uppers+digits, 5)+"-"+m.text(uppers+digits, 5), "")
	add("airtable", "key ", "pat"+m.text(alnum, 14)+"."+m.text(hexes, 64), "")
	add("aws secret alone", "AKIA and ", m.text(std, 40), "\n")
	add("aws secret of the manual", "(", "wJalrXUtnFEMI/K7MDENG/bPxRfiCY"+"EXAMPLEKEY", ")")
	add("azure storage", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=", m.text(std, 86)+"==", ";EndpointSuffix=core")
	add("azure bus", "Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=", m.text(std, 43)+"=", "")
	add("azure sas", "https://x.blob.core.windows.net/a?sv=2026&sig=", url.QueryEscape(m.text(std, 43)+"="), "&se=1")
	add("netrc", "machine example.com\n  login me\n  password ", m.text(alnum, 10), "\n")
	add("sql", "ALTER USER bot WITH PASSWORD '", m.text(alnum, 9), "';")
	add("mysql grant", "IDENTIFIED BY '", m.text(alnum, 9), "'")
	add("flag", "tool --password ", m.text(alnum, 10), " --verbose")
	add("flag with sign", "tool --api-key=", m.text(alnum, 20), " x")
	add("sshpass", "sshpass -p ", m.text(alnum, 10), " ssh h")
	add("cookie", "Cookie: ", "session="+m.text(alnum, 32), "\r\nHost: h")
	return all
}

func uuid(m maker) string {
	return m.text(hexes, 8) + "-" + m.text(hexes, 4) + "-" + m.text(hexes, 4) + "-" + m.text(hexes, 4) + "-" + m.text(hexes, 12)
}

func namedValues(m maker) []example {
	var all []example
	for i, f := range []string{
		"password=%s", "PASSWORD=%s", "DB_PASSWORD=%s\n", "db.password = %s", "password: %s", `"password": "%s"`, `"password":"%s",`, "passwd=%s&x=y", "pwd=%s;", "PGPASSWORD=%s psql",
		"dbPassword: '%s'", "password := \"%s\"", "'password' => '%s'", "<password>%s</password>", `{\"password\":\"%s\"}`, "spring.datasource.password=%s", "--http-password=%s", "passphrase: %s", `config["password"] = "%s"`, "POSTGRES_PASSWORD: %s", "then it ends: password=\"%s",
	} {
		secret := []string{"hunter2" + m.text(digits, 2), m.text(alnum, 12), m.text(alnum, 5) + "!" + m.text(alnum, 4)}[i%3]
		before, after, _ := strings.Cut(f, "%s")
		all = append(all, example{name: "named " + f, text: "x\n" + before + secret + after, secret: []string{secret}})
	}
	for i, f := range []string{
		"api_key=%s", "API_KEY=%s", `"api_key": "%s"`, "apiKey: '%s'", "secret: %s", "client_secret=%s", `"clientSecret": "%s"`, "SECRET_KEY = '%s'", "access_token=%s&expires=1", "X-Api-Key: %s",
		"X-Auth-Token: %s", "PRIVATE-TOKEN: %s", "aws_secret_access_key = %s", `"SecretAccessKey": "%s"`, "aws_session_token=%s", "token: \"%s\"", "_authToken=%s", "//registry/:_auth=%s", "signing_key: %s", "ENCRYPTION_KEY=%s",
		"DATADOG_API_KEY=%s", "dd_app_key: %s", "<token>%s</token>", "webhook_secret=%s", "jwt_secret: %s", "refresh_token=%s", "MASTER_KEY=%s", "license_key=%s", "auth: %s", "credential=%s",
	} {
		letters, n := alnum, 32
		if i%3 == 1 {
			letters = hexes
		}
		secret := "f4" + m.text(letters, n)
		before, after, _ := strings.Cut(f, "%s")
		all = append(all, example{name: "named " + f, text: before + secret + after, secret: []string{secret}})
	}
	return all
}

func blocksOfKeys(m maker) []example {
	var lines []string
	for range 6 {
		lines = append(lines, m.text(std, 64))
	}
	lines = append(lines, m.text(std, 22)+"==")
	var all []example
	for _, label := range []string{"RSA PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY", "DSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "PGP PRIVATE KEY BLOCK", "PGP MESSAGE"} {
		head := "-----BEGIN " + label + "-----"
		foot := "-----END " + label + "-----"
		body := strings.Join(lines, "\n")
		if strings.HasPrefix(label, "PGP") {
			body = "Version: GnuPG v2\nComment: none\n\n" + body + "\n=aB3d"
		}
		all = append(all,
			example{name: label, text: "key:\n" + head + "\n" + body + "\n" + foot + "\nthat was it", secret: lines},
			example{name: label + " cut off", text: "key:\n" + head + "\n" + body, secret: lines},
			example{name: label + " in JSON", text: `{"k": "` + strings.ReplaceAll(head+"\n"+body+"\n"+foot, "\n", `\n`) + `"}`, secret: lines},
		)
	}
	pem := "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Join(lines, "\n") + "\n-----END RSA PRIVATE KEY-----\n"
	encoded := base64.StdEncoding.EncodeToString([]byte(pem))
	return append(all,
		example{name: "PEM in base64", text: "data:\n  tls.key: " + encoded + "\n", secret: []string{encoded}},
		example{name: "PEM with headers", text: strings.Replace(pem, "KEY-----\n", "KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n", 1), secret: lines},
		example{name: "PEM quoted", text: "> " + strings.ReplaceAll(pem, "\n", "\n> "), secret: lines},
		example{name: "PEM with carriage returns", text: strings.ReplaceAll(pem, "\n", "\r\n"), secret: lines},
		example{name: "PEM with numbered lines", text: numbered(pem), secret: lines},
		example{name: "SSH2", text: "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nComment: \"x\"\n" + strings.Join(lines, "\n") + "\n---- END SSH2 ENCRYPTED PRIVATE KEY ----", secret: lines},
		example{name: "PuTTY", text: "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 7\n" + strings.Join(lines, "\n") + "\nPrivate-MAC: 00", secret: lines},
	)
}

func numbered(text string) string {
	var b strings.Builder
	for i, l := range strings.Split(text, "\n") {
		fmt.Fprintf(&b, "%6d\t%s\n", i+1, l)
	}
	return b.String()
}

func encodedForms() []example {
	var all []example
	add := func(name, form string, secret ...string) {
		all = append(all, example{name: "configured " + name, text: "before <" + form + "> after", secret: append(secret, form)})
	}
	add("plain", configured)
	add("query", url.QueryEscape(configured))
	add("query in small letters", strings.NewReplacer("%2B", "%2b", "%2F", "%2f", "%3D", "%3d").Replace(url.QueryEscape(configured)))
	add("path", url.PathEscape(configured))
	add("hex", hex.EncodeToString([]byte(configured)))
	add("hex capital", strings.ToUpper(hex.EncodeToString([]byte(configured))))
	add("in JSON", `zK9#very+plain/horse\u0026staple=77`)
	add("in HTML", "zK9#very+plain/horse&amp;staple=77")
	for name, e := range map[string]*base64.Encoding{"std": base64.StdEncoding, "url": base64.URLEncoding, "raw std": base64.RawStdEncoding, "raw url": base64.RawURLEncoding} {
		add("base64 "+name, e.EncodeToString([]byte(configured)))
		for _, before := range []string{"u:", "bot:", "x", "yy"} {
			whole := e.EncodeToString([]byte(before + configured + " tail"))
			first, last := (8*len(before)+5)/6, 8*(len(before)+len(configured))/6
			all = append(all, example{name: "configured base64 " + name + " behind " + before, text: "<" + whole + ">", secret: []string{whole[first:last]}})
		}
	}
	slices.SortFunc(all, func(a, b example) int { return strings.Compare(a.name, b.name) })
	return all
}

func splitByHidden(m maker) []example {
	var all []example
	for i, c := range []rune{0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0xAD, 0x180E, 0x200E, 0x202E, 0xFE0F, 0xE0061, 0x34F} {
		token := "ghp" + "_" + m.text(alnum, 36)
		at := 5 + i*3
		all = append(all,
			example{name: fmt.Sprintf("hidden %U", c), text: "a " + token[:at] + string(c) + token[at:] + " b", secret: []string{token[4:at], token[at:]}},
			example{name: fmt.Sprintf("hidden %U everywhere", c), text: "a " + spaced(token, c) + " b", secret: []string{token[4:]}},
			example{name: fmt.Sprintf("hidden %U in a configured one", c), text: configured[:9] + string(c) + configured[9:], secret: []string{configured[:9], configured[9:]}},
		)
	}
	return all
}

func spaced(token string, c rune) string {
	var b strings.Builder
	for _, r := range token {
		b.WriteRune(r)
		b.WriteRune(c)
	}
	return b.String()
}

// piece is how much of a secret may be left of it at one place, in bytes: less
// than anybody could use.
const piece = 6

// leaks returns a piece of a secret that is in text, or "".
func (e example) leaks(text string) string {
	text = strings.Map(func(r rune) rune {
		if r > 126 {
			return -1 // hidden characters do not make it less readable
		}
		return r
	}, text)
	for _, s := range e.secret {
		for i := 0; i+piece <= len(s); i++ {
			if strings.Contains(text, s[i:i+piece]) {
				return s[i : i+piece]
			}
		}
	}
	return ""
}

// settled is what of a shown text is never taken back: all but a last word.
func settled(s string) string {
	return strings.TrimRight(s[:strings.LastIndexAny(s, " \n\t")+1], " \n\t")
}

// Finding 6: redaction missed 54 of 213 kinds of credentials.
func TestFinding6CorpusHasNoMisses(t *testing.T) {
	t.Parallel()
	all := corpus()
	if len(all) < 300 {
		t.Fatalf("the corpus has %d examples", len(all))
	}
	r := redact.New(configured)
	missed := 0
	for _, e := range all {
		got := r.String(e.text)
		if left := e.leaks(got); left != "" || !strings.Contains(got, redact.Mask) {
			missed++
			t.Errorf("%s: %q of %.300q is left: %.300q", e.name, left, e.text, got)
		}
		if again := r.String(got); again != got {
			t.Errorf("%s: redacting twice changes %.300q to %.300q", e.name, got, again)
		}
	}
	t.Logf("%d of %d missed", missed, len(all))
}

// Finding 6: what is shown of a stream must not hold a secret in pieces, wherever
// the stream divides it, and must not take back what it showed.
func TestFinding6StreamDividedAtEveryByte(t *testing.T) {
	t.Parallel()
	r := redact.New(configured)
	for _, e := range corpus() {
		text := "Here it is: " + e.text + "\nThat was all of it."
		whole := r.String(text)
		for n := range len(text) + 1 {
			got := r.Partial(text[:n])
			if !strings.HasPrefix(whole, settled(got)) {
				t.Errorf("%s: after %d bytes %.200q is shown, and then %.300q", e.name, n, got, whole)
				break
			}
			if left := e.leaks(got); left != "" {
				t.Errorf("%s: after %d bytes %q is shown: %.300q", e.name, n, left, got)
				break
			}
		}
	}
}
