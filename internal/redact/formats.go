package redact

import (
	"encoding/base64"
	"slices"
	"strings"
)

// format is a kind of token that is known by how it begins.
type format struct {
	// source says who publishes the format: the name of a rule of gitleaks
	// (config/gitleaks.toml), "GitHub" for the list of supported patterns in the
	// documentation of its secret scanning, or the documentation of the issuer.
	source   string
	prefixes []string
	bytes    *bytes            // of what follows the prefix
	min, max int               // of how many bytes; a max of 0 is none
	ok       func(string) bool // further condition on what follows; once true it stays true with more text
	inside   bool              // it may begin in the middle of a word
	keep     bool              // the prefix stays
}

// random is the condition for tokens whose prefix occurs in ordinary text, in
// identifiers such as sk-container-id.
func random(s string) bool {
	if has(s, upperByte) || count(s, digitByte) >= 3 {
		return true
	}
	for at := 0; at < len(s); at++ { // no word of an identifier is that long
		n := run(s[at:], alnumByte)
		if n >= longestWord {
			return true
		}
		at += n
	}
	return false
}

// longestWord is how long a part of a token has to be to be no word, in bytes.
const longestWord = 20

// formats are the tokens of services, as their issuers publish them. The shortest
// length is below the published one where the prefix alone is sure: a token that
// is cut off or of a new length is one all the same.
var formats = []format{
	// Our own.
	{source: "apikey", prefixes: []string{"rak_"}, bytes: nameByte, min: 15},

	// Code hosting and packages.
	{source: "GitHub; gitleaks github-pat, github-oauth, github-app-token, github-refresh-token", prefixes: []string{"ghp_", "gho_", "ghu_", "ghr_"}, bytes: alnumByte, min: 20, inside: true},
	{source: "GitHub blog 2021-04-05, token formats", prefixes: []string{"ghs_"}, bytes: dottedByte, min: 20, inside: true},
	{source: "gitleaks github-fine-grained-pat", prefixes: []string{"github_pat_"}, bytes: nameByte, min: 20, inside: true},
	{source: "gitleaks gitlab-*; docs.gitlab.com token overview", prefixes: []string{"glpat-", "gldt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glrt-", "glrtr-", "glsoat-", "glffct-", "glwt-"}, bytes: dottedByte, min: 16, inside: true},
	{source: "gitleaks gitlab-rrt", prefixes: []string{"GR1348941"}, bytes: tokenByte, min: 16},
	{source: "support.atlassian.com, access tokens of Bitbucket and API tokens", prefixes: []string{"ATATT3", "ATCTT3", "ATBB"}, bytes: paddedByte, min: 24, ok: random},
	{source: "gitleaks npm-access-token", prefixes: []string{"npm_"}, bytes: alnumByte, min: 30},
	{source: "gitleaks pypi-upload-token", prefixes: []string{"pypi-AgE", "pypi-AgN"}, bytes: tokenByte, min: 30, inside: true},
	{source: "guides.rubygems.org, API key", prefixes: []string{"rubygems_"}, bytes: hexByte, min: 32},
	{source: "crates.io, token format", prefixes: []string{"cio"}, bytes: alnumByte, min: 32, max: 32, ok: random},
	{source: "gitleaks clojars-api-token", prefixes: []string{"CLOJARS_"}, bytes: alnumByte, min: 30},
	{source: "learn.microsoft.com, NuGet API keys", prefixes: []string{"oy2"}, bytes: setOf("a-z0-9"), min: 43, max: 43},
	{source: "docs.docker.com, access tokens", prefixes: []string{"dckr_pat_", "dckr_oat_"}, bytes: tokenByte, min: 20, inside: true},
	{source: "gitleaks artifactory-api-key", prefixes: []string{"AKCp"}, bytes: alnumByte, min: 60},
	{source: "gitleaks artifactory-reference-token", prefixes: []string{"cmVmd"}, bytes: alnumByte, min: 59, max: 59},
	{source: "gitleaks sourcegraph-access-token", prefixes: []string{"sgp_", "slk_"}, bytes: nameByte, min: 40},
	{source: "gitleaks sonar-api-token", prefixes: []string{"squ_", "sqp_", "sqa_"}, bytes: hexByte, min: 32},
	{source: "circleci.com, API tokens", prefixes: []string{"CCIPAT_", "CCIPRJ_"}, bytes: nameByte, min: 20},
	{source: "buildkite.com, API tokens", prefixes: []string{"bkua_", "bkaj_"}, bytes: alnumByte, min: 30},
	{source: "gitleaks readme-api-token", prefixes: []string{"rdme_"}, bytes: setOf("a-z0-9"), min: 60},
	{source: "GitHub, Snyk", prefixes: []string{"snyk_uat.", "snyk_sat."}, bytes: dottedByte, min: 20},

	// Models.
	{source: "gitleaks openai-api-key, anthropic-api-key; openrouter.ai, api-docs.deepseek.com", prefixes: []string{"sk-"}, bytes: tokenByte, min: 16, ok: random},
	{source: "gitleaks huggingface-access-token, huggingface-organization-api-token", prefixes: []string{"hf_", "api_org_"}, bytes: alnumByte, min: 28},
	{source: "console.groq.com, API keys", prefixes: []string{"gsk_"}, bytes: alnumByte, min: 32},
	{source: "gitleaks gcp-api-key", prefixes: []string{"AIza"}, bytes: tokenByte, min: 30},
	{source: "ai.google.dev, API keys of 2026", prefixes: []string{"AQ.Ab"}, bytes: tokenByte, min: 30},
	{source: "docs.x.ai, API keys", prefixes: []string{"xai-"}, bytes: alnumByte, min: 32},
	{source: "gitleaks perplexity-api-key", prefixes: []string{"pplx-"}, bytes: alnumByte, min: 32},
	{source: "replicate.com/docs", prefixes: []string{"r8_"}, bytes: alnumByte, min: 30},
	{source: "docs.fireworks.ai", prefixes: []string{"fw_"}, bytes: alnumByte, min: 20, max: 32, ok: random},
	{source: "docs.together.ai", prefixes: []string{"tgp_v1_"}, bytes: tokenByte, min: 32},
	{source: "docs.nvidia.com, NGC keys", prefixes: []string{"nvapi-"}, bytes: tokenByte, min: 40},
	{source: "cerebras.ai, API keys", prefixes: []string{"csk-"}, bytes: setOf("a-z0-9"), min: 40},
	{source: "docs.voyageai.com; docs.pinecone.io", prefixes: []string{"pa-", "pcsk_"}, bytes: tokenByte, min: 40, ok: random},
	{source: "langfuse.com; docs.langchain.com", prefixes: []string{"lsv2_pt_", "lsv2_sk_", "ls__"}, bytes: nameByte, min: 30},
	{source: "docs.tavily.com; docs.firecrawl.dev; e2b.dev", prefixes: []string{"tvly-", "fc-", "e2b_"}, bytes: tokenByte, min: 30, ok: random},

	// Clouds.
	{source: "gitleaks aws-access-token; docs.aws.amazon.com, unique identifiers", prefixes: []string{"AKIA", "ASIA", "ABIA", "ACCA"}, bytes: upnumByte, min: 16, max: 16},
	{source: "docs.aws.amazon.com, Bedrock API keys", prefixes: []string{"ABSKQmVkcm9ja0FQSUtleS", "bedrock-api-key-"}, bytes: looseByte, min: 30, inside: true},
	{source: "developers.google.com, OAuth 2.0", prefixes: []string{"ya29."}, bytes: dottedByte, min: 20, inside: true},
	{source: "developers.google.com, OAuth 2.0 client secrets", prefixes: []string{"GOCSPX-"}, bytes: tokenByte, min: 20, inside: true},
	{source: "GitHub, Google OAuth refresh token", prefixes: []string{"1//0"}, bytes: tokenByte, min: 36},
	{source: "cloud.google.com, HMAC keys", prefixes: []string{"GOOG1E", "GOOG"}, bytes: upnumByte, min: 20, max: 61, ok: func(s string) bool { return has(s, digitByte) }},
	{source: "gitleaks digitalocean-pat, -access-token, -refresh-token", prefixes: []string{"dop_v1_", "doo_v1_", "dor_v1_", "dot_v1_"}, bytes: hexByte, min: 32, inside: true},
	{source: "GitHub, DigitalOcean Spaces", prefixes: []string{"DO00", "DO801"}, bytes: upnumByte, min: 15, max: 16, ok: func(s string) bool { return has(s, upperByte) && count(s, digitByte) >= 2 }},
	{source: "gitleaks alibaba-access-key-id", prefixes: []string{"LTAI"}, bytes: alnumByte, min: 12, max: 26, ok: random},
	{source: "cloud.tencent.com, secret ids", prefixes: []string{"AKID"}, bytes: alnumByte, min: 28, max: 36, ok: random},
	{source: "gitleaks heroku-api-key-v2", prefixes: []string{"HRKU-"}, bytes: tokenByte, min: 30},
	{source: "gitleaks flyio-access-token", prefixes: []string{"fo1_", "fm1r_", "fm1a_", "fm2_"}, bytes: paddedByte, min: 40},
	{source: "vercel.com, tokens", prefixes: []string{"vcp_", "vci_", "vca_", "vcr_", "vck_"}, bytes: tokenByte, min: 24, ok: random},
	{source: "docs.netlify.com", prefixes: []string{"nfp_", "nfc_", "nfo_", "nfb_", "nfu_"}, bytes: alnumByte, min: 30},
	{source: "gitleaks cloudflare-origin-ca-key", prefixes: []string{"v1.0-"}, bytes: setOf("a-f0-9-"), min: 100},
	{source: "developers.cloudflare.com, token formats of 2026", prefixes: []string{"cfut_", "cfat_", "cfk_"}, bytes: tokenByte, min: 30},
	{source: "supabase.com, API keys", prefixes: []string{"sb_secret_", "sbp_"}, bytes: tokenByte, min: 20, ok: random},
	{source: "gitleaks planetscale-*", prefixes: []string{"pscale_tkn_", "pscale_pw_", "pscale_oauth_"}, bytes: dottedByte, min: 24},
	{source: "neon.com, API keys", prefixes: []string{"napi_"}, bytes: alnumByte, min: 40},
	{source: "gitleaks databricks-api-token", prefixes: []string{"dapi"}, bytes: hexByte, min: 32},
	{source: "gitleaks clickhouse-cloud-api-secret-key", prefixes: []string{"4b1d"}, bytes: alnumByte, min: 38, max: 38, ok: func(s string) bool { return has(s, upperByte) }},
	{source: "tailscale.com, keys", prefixes: []string{"tskey-"}, bytes: tokenByte, min: 16, inside: true},
	{source: "GitHub, Scaleway", prefixes: []string{"SCW"}, bytes: upnumByte, min: 17, max: 17, ok: func(s string) bool { return has(s, digitByte) }},
	{source: "github.com/Azure, Cosmos, Storage and DevOps key signatures", prefixes: []string{"AccountKey=", "SharedAccessKey="}, bytes: paddedByte, min: 20, keep: true},

	// Secrets' own keepers, identity.
	{source: "gitleaks vault-service-token, vault-batch-token", prefixes: []string{"hvs.", "hvb.", "hvr."}, bytes: tokenByte, min: 24},
	{source: "gitleaks vault-service-token, old form", prefixes: []string{"s."}, bytes: alnumByte, min: 24, max: 24, ok: func(s string) bool { return has(s, upperByte) && has(s, lowerByte) && has(s, digitByte) }},
	{source: "gitleaks doppler-api-token", prefixes: []string{"dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."}, bytes: dottedByte, min: 30},
	{source: "gitleaks 1password-service-account-token", prefixes: []string{"ops_eyJ"}, bytes: paddedByte, min: 40, inside: true},
	{source: "gitleaks 1password-secret-key", prefixes: []string{"A3-"}, bytes: setOf("A-Z0-9-"), min: 31, ok: func(s string) bool { return has(s, digitByte) }},
	{source: "gitleaks age-secret-key", prefixes: []string{"AGE-SECRET-KEY-1", "AGE-SECRET-KEY-PQ-1"}, bytes: upnumByte, min: 40, inside: true},
	{source: "gitleaks openshift-user-token", prefixes: []string{"sha256~"}, bytes: tokenByte, min: 40},
	{source: "infisical.com; GitHub", prefixes: []string{"st.", "infisical_"}, bytes: dottedByte, min: 40, ok: random},
	{source: "workos.com; clerk.com; GitHub", prefixes: []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_prod_"}, bytes: alnumByte, min: 10, inside: true},
	{source: "gitleaks authress-service-client-access-key", prefixes: []string{"scauth_", "authress_"}, bytes: paddedByte, min: 40},

	// Payment and trade.
	{source: "docs.stripe.com, webhooks; standardwebhooks.com", prefixes: []string{"whsec_"}, bytes: paddedByte, min: 16, inside: true},
	{source: "gitleaks square-access-token; developer.squareup.com", prefixes: []string{"sq0atp-", "sq0csp-", "sq0idp-"}, bytes: tokenByte, min: 20, inside: true},
	{source: "gitleaks square-access-token", prefixes: []string{"EAAA"}, bytes: tokenByte, min: 50, max: 64, ok: random},
	{source: "gitleaks shopify-*", prefixes: []string{"shpat_", "shpca_", "shppa_", "shpss_", "shptka_"}, bytes: alnumByte, min: 24, inside: true},
	{source: "gitleaks flutterwave-secret-key", prefixes: []string{"FLWSECK-", "FLWSECK_TEST-"}, bytes: tokenByte, min: 12, inside: true},
	{source: "developer.paypal.com; braintree", prefixes: []string{"access_token$production$", "access_token$sandbox$"}, bytes: setOf("a-z0-9$"), min: 30, inside: true},
	{source: "razorpay.com, API keys", prefixes: []string{"rzp_live_", "rzp_test_"}, bytes: alnumByte, min: 10, inside: true},
	{source: "gitleaks plaid-api-token", prefixes: []string{"access-sandbox-", "access-development-", "access-production-"}, bytes: setOf("0-9a-f-"), min: 30},
	{source: "gitleaks duffel-api-token", prefixes: []string{"duffel_test_", "duffel_live_"}, bytes: paddedByte, min: 24},
	{source: "gitleaks easypost-api-token", prefixes: []string{"EZAK", "EZTK"}, bytes: alnumByte, min: 50},
	{source: "gitleaks shippo-api-token", prefixes: []string{"shippo_live_", "shippo_test_"}, bytes: hexByte, min: 32},

	// Messages and mail.
	{source: "gitleaks slack-*; docs.slack.dev, token types", prefixes: []string{"xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xoxz-", "xapp-", "xwfp-"}, bytes: setOf("A-Za-z0-9.%+/=_-"), min: 10, inside: true},
	{source: "gitleaks sendgrid-api-token", prefixes: []string{"SG."}, bytes: dottedByte, min: 30},
	{source: "gitleaks sendinblue-api-token", prefixes: []string{"xkeysib-", "xsmtpsib-"}, bytes: tokenByte, min: 40},
	{source: "gitleaks mailgun-private-api-token", prefixes: []string{"key-"}, bytes: setOf("a-f0-9"), min: 32, max: 32},
	{source: "gitleaks mailchimp-api-key is by name; mandrillapp.com", prefixes: []string{"md-"}, bytes: tokenByte, min: 22, max: 22, ok: random},
	{source: "resend.com; postmark", prefixes: []string{"re_"}, bytes: nameByte, min: 24, ok: func(s string) bool { return has(s, upperByte) && has(s, digitByte) }},
	{source: "gitleaks twilio-api-key", prefixes: []string{"SK"}, bytes: setOf("0-9a-f"), min: 32, max: 32},
	{source: "discord.com/developers, webhooks", prefixes: []string{"discord.com/api/webhooks/", "discordapp.com/api/webhooks/"}, bytes: setOf("A-Za-z0-9/_-"), min: 30, inside: true, keep: true},
	{source: "gitleaks slack-webhook-url", prefixes: []string{"hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"}, bytes: setOf("A-Za-z0-9+/"), min: 10, inside: true, keep: true},
	{source: "gitleaks microsoft-teams-webhook", prefixes: []string{".webhook.office.com/webhookb2/"}, bytes: setOf("A-Za-z0-9@/-"), min: 36, inside: true, keep: true},
	{source: "zapier.com; make.com; ifttt.com, webhooks", prefixes: []string{"hooks.zapier.com/hooks/catch/", "maker.ifttt.com/trigger/"}, bytes: setOf("A-Za-z0-9_/-"), min: 10, inside: true, keep: true},
	{source: "open.feishu.cn; larksuite.com, bot webhooks", prefixes: []string{"/open-apis/bot/v2/hook/"}, bytes: setOf("A-Za-z0-9-"), min: 20, inside: true, keep: true},
	{source: "gitleaks facebook-page-access-token; developers.facebook.com", prefixes: []string{"EAAC", "EAAM", "EAAG", "EAAB"}, bytes: alnumByte, min: 60},
	{source: "gitleaks twitter-bearer-token", prefixes: []string{"AAAAAAAAAAAAAAAAAAAAAA"}, bytes: setOf("A-Za-z0-9%"), min: 80, max: 110, ok: func(s string) bool { return has(s, lowerByte) && has(s, digitByte) }},
	{source: "docs.pushbullet.com; telnyx.com", prefixes: []string{"KEY01"}, bytes: nameByte, min: 30},

	// Tools of teams and operations.
	{source: "gitleaks notion-api-token", prefixes: []string{"ntn_", "secret_"}, bytes: alnumByte, min: 40},
	{source: "gitleaks linear-api-key", prefixes: []string{"lin_api_", "lin_oauth_", "lin_wh_"}, bytes: alnumByte, min: 24, inside: true},
	{source: "airtable.com, personal access tokens", prefixes: []string{"pat"}, bytes: setOf("A-Za-z0-9."), min: 70, ok: func(s string) bool { return len(s) > 14 && s[14] == '.' }},
	{source: "figma.com, personal access tokens", prefixes: []string{"figd_", "figo_", "figoh_", "figor_"}, bytes: tokenByte, min: 30},
	{source: "gitleaks postman-api-token", prefixes: []string{"PMAK-", "PMAT-"}, bytes: tokenByte, min: 24},
	{source: "gitleaks grafana-cloud-api-token, grafana-service-account-token", prefixes: []string{"glc_eyJ", "glsa_"}, bytes: setOf("A-Za-z0-9+/=_"), min: 24, inside: true},
	{source: "gitleaks grafana-api-key", prefixes: []string{"eyJrIjoi"}, bytes: setOf("A-Za-z0-9="), min: 40},
	{source: "gitleaks dynatrace-api-token", prefixes: []string{"dt0c01.", "dt0s01.", "dt0s02.", "dt0s03."}, bytes: setOf("A-Z0-9."), min: 30, inside: true},
	{source: "gitleaks new-relic-*", prefixes: []string{"NRAK-", "NRII-", "NRIQ-", "NRJS-", "NRRA-"}, bytes: tokenByte, min: 16},
	{source: "gitleaks sentry-org-token, sentry-user-token", prefixes: []string{"sntrys_", "sntryu_", "sntryi_"}, bytes: paddedByte, min: 24},
	{source: "posthog.com, personal API keys", prefixes: []string{"phx_", "phs_"}, bytes: alnumByte, min: 30},
	{source: "gitleaks octopus-deploy-api-key", prefixes: []string{"API-"}, bytes: upnumByte, min: 25, max: 30, ok: func(s string) bool { return has(s, digitByte) }},
	{source: "gitleaks pulumi-api-token", prefixes: []string{"pul-"}, bytes: hexByte, min: 40, max: 40},
	{source: "gitleaks prefect-api-token", prefixes: []string{"pnu_", "pnb_"}, bytes: alnumByte, min: 30},
	{source: "gitleaks infracost-api-token", prefixes: []string{"ico-"}, bytes: alnumByte, min: 32, max: 32, ok: random},
	{source: "gitleaks frameio-api-token", prefixes: []string{"fio-u-"}, bytes: paddedByte, min: 30},
	{source: "gitleaks typeform-api-token", prefixes: []string{"tfp_"}, bytes: dottedByte, min: 40},
	{source: "gitleaks scalingo-api-token", prefixes: []string{"tk-us-"}, bytes: tokenByte, min: 40},
	{source: "gitleaks adobe-client-secret", prefixes: []string{"p8e-", "p8-"}, bytes: alnumByte, min: 32},
	{source: "gitleaks intra42-client-secret", prefixes: []string{"s-s4t2ud-", "s-s4t2af-"}, bytes: hexByte, min: 40},
	{source: "gitleaks mapbox-api-token, secret form; docs.mapbox.com", prefixes: []string{"sk.eyJ"}, bytes: dottedByte, min: 40},
	{source: "gitleaks launchdarkly is by name; docs.launchdarkly.com", prefixes: []string{"sdk-", "api-"}, bytes: setOf("0-9a-f-"), min: 36, max: 36, ok: func(s string) bool { return strings.Count(s, "-") == 4 }},
	{source: "docs.contentful.com", prefixes: []string{"CFPAT-"}, bytes: tokenByte, min: 30},
	{source: "developers.asana.com", prefixes: []string{"2/", "1/", "0/"}, bytes: setOf("0-9/:a-f"), min: 46, ok: func(s string) bool { return strings.Count(s, "/") >= 1 && strings.Contains(s, ":") }},
	{source: "developer.hashicorp.com, HCP and Consul", prefixes: []string{"hcp."}, bytes: tokenByte, min: 40},
	{source: "docs.temporal.io; docs.prisma.io", prefixes: []string{"prisma_live_", "tmprl_"}, bytes: paddedByte, min: 30},
	{source: "docs.lob.com", prefixes: []string{"live_pub_", "test_pub_"}, bytes: setOf("a-f0-9"), min: 31},

	// What says itself that a credential follows.
	{source: "RFC 6750", prefixes: []string{"Bearer ", "bearer ", "BEARER "}, bytes: looseByte, min: 8, ok: notWord, keep: true},
	{source: "RFC 7617", prefixes: []string{"Basic ", "basic ", "BASIC "}, bytes: paddedByte, min: 8, ok: userAndPassword, keep: true},
	{source: "manuals of command line tools", prefixes: []string{
		"--password ", "--passwd ", "--pass ", "--token ", "--secret ", "--api-key ", "--apikey ", "--access-token ", "--auth-token ", "--client-secret ", "--secret-key ", "--secret-access-key ", "--private-token ",
		"sshpass -p ", "redis-cli -a ",
	}, bytes: setOf("A-Za-z0-9._~+/=!@#%^&*-"), min: 6, ok: func(s string) bool { return s[0] != '-' && mixed(s) }, keep: true},
}

// notWord is the condition on what follows "Bearer ".
func notWord(s string) bool {
	return len(s) >= 16 || has(s, digitByte) || has(s[1:], upperByte)
}

// mixed reports whether s has letters and digits.
func mixed(s string) bool {
	return has(s, digitByte) && (has(s, lowerByte) || has(s, upperByte))
}

// userAndPassword is the condition on what follows "Basic ": base64 of a text
// with a colon.
func userAndPassword(s string) bool {
	s = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	if n := len(s) % 4; n == 1 { // not all of it is there
		s = s[:len(s)-1]
	}
	text, err := base64.RawStdEncoding.DecodeString(s)
	return err == nil && slices.Contains(text, ':')
}

// rules returns a rule for each format, and the rules that are more than a prefix
// and what follows.
func rules() []rule {
	var all []rule
	for i := range formats {
		for _, p := range formats[i].prefixes {
			all = append(all, rule{anchor: p, find: formats[i].finder(len(p))})
		}
	}
	return slices.Concat(all, blocks(), addresses(), named())
}

// finder returns the function of a rule whose anchor has a length.
func (f *format) finder(anchor int) func(string, int, bool) match {
	return func(s string, at int, whole bool) match {
		if !f.inside && !begins(s, at) {
			return match{}
		}
		from := at + anchor
		n := run(s[from:], f.bytes)
		end := from + n
		more := !whole && end == len(s)
		start := at
		if f.keep {
			start = from
		}
		switch {
		case f.max > 0 && n > f.max:
			return match{}
		case more && (n < f.min || f.max > 0), more && f.ok != nil && !f.ok(s[from:end]):
			return match{span: span{start: start}, open: true}
		case n < f.min, f.ok != nil && !f.ok(s[from:end]):
			return match{}
		}
		return match{span: span{start, end}}
	}
}
