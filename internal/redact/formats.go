package redact

import (
	"encoding/base64"
	"slices"
	"strings"
)

// format is a kind of token that is known by how it begins.
type format struct {
	prefixes []string
	list     string            // the bytes of what follows the prefix, for setOf
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
//
// Before each stands who publishes it: the name of a rule of gitleaks
// (config/gitleaks.toml), "GitHub" for the list of supported patterns in the
// documentation of its secret scanning, or the documentation of the issuer.
var formats = []format{
	// Our own.
	{ /* apikey */ prefixes: []string{"rak_"}, list: nameList, min: 15},

	// Code hosting and packages.
	{ /* GitHub; gitleaks github-pat, github-oauth, github-app-token, github-refresh-token */ prefixes: []string{"ghp_", "gho_", "ghu_", "ghr_"}, list: alnumList, min: 20, inside: true},
	{ /* GitHub blog 2021-04-05, token formats */ prefixes: []string{"ghs_"}, list: dottedList, min: 20, inside: true},
	{ /* gitleaks github-fine-grained-pat */ prefixes: []string{"github_pat_"}, list: nameList, min: 20, inside: true},
	{ /* gitleaks gitlab-*; docs.gitlab.com token overview */ prefixes: []string{"glpat-", "gldt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glrt-", "glrtr-", "glsoat-", "glffct-", "glwt-"}, list: dottedList, min: 16, inside: true},
	{ /* gitleaks gitlab-rrt */ prefixes: []string{"GR1348941"}, list: dashedList, min: 16},
	{ /* support.atlassian.com, access tokens of Bitbucket and API tokens */ prefixes: []string{"ATATT3", "ATCTT3", "ATBB"}, list: paddedList, min: 24, ok: random},
	{ /* gitleaks npm-access-token */ prefixes: []string{"npm_"}, list: alnumList, min: 30},
	{ /* gitleaks pypi-upload-token */ prefixes: []string{"pypi-AgE", "pypi-AgN"}, list: dashedList, min: 30, inside: true},
	{ /* guides.rubygems.org, API key */ prefixes: []string{"rubygems_"}, list: hexList, min: 32},
	{ /* crates.io, token format */ prefixes: []string{"cio"}, list: alnumList, min: 32, max: 32, ok: random},
	{ /* gitleaks clojars-api-token */ prefixes: []string{"CLOJARS_"}, list: alnumList, min: 30},
	{ /* learn.microsoft.com, NuGet API keys */ prefixes: []string{"oy2"}, list: "a-z0-9", min: 43, max: 43},
	{ /* docs.docker.com, access tokens */ prefixes: []string{"dckr_pat_", "dckr_oat_"}, list: dashedList, min: 20, inside: true},
	{ /* gitleaks artifactory-api-key */ prefixes: []string{"AKCp"}, list: alnumList, min: 60},
	{ /* gitleaks artifactory-reference-token */ prefixes: []string{"cmVmd"}, list: alnumList, min: 59, max: 59},
	{ /* gitleaks sourcegraph-access-token */ prefixes: []string{"sgp_", "slk_"}, list: nameList, min: 40},
	{ /* gitleaks sonar-api-token */ prefixes: []string{"squ_", "sqp_", "sqa_"}, list: hexList, min: 32},
	{ /* circleci.com, API tokens */ prefixes: []string{"CCIPAT_", "CCIPRJ_"}, list: nameList, min: 20},
	{ /* buildkite.com, API tokens */ prefixes: []string{"bkua_", "bkaj_"}, list: alnumList, min: 30},
	{ /* gitleaks readme-api-token */ prefixes: []string{"rdme_"}, list: "a-z0-9", min: 60},
	{ /* GitHub, Snyk */ prefixes: []string{"snyk_uat.", "snyk_sat."}, list: dottedList, min: 20},

	// Models.
	{ /* gitleaks openai-api-key, anthropic-api-key; openrouter.ai, api-docs.deepseek.com */ prefixes: []string{"sk-"}, list: dashedList, min: 16, ok: random},
	{ /* gitleaks huggingface-access-token, huggingface-organization-api-token */ prefixes: []string{"hf_", "api_org_"}, list: alnumList, min: 28},
	{ /* console.groq.com, API keys */ prefixes: []string{"gsk_"}, list: alnumList, min: 32},
	{ /* gitleaks gcp-api-key */ prefixes: []string{"AIza"}, list: dashedList, min: 30},
	{ /* ai.google.dev, API keys of 2026 */ prefixes: []string{"AQ.Ab"}, list: dashedList, min: 30},
	{ /* docs.x.ai, API keys */ prefixes: []string{"xai-"}, list: alnumList, min: 32},
	{ /* gitleaks perplexity-api-key */ prefixes: []string{"pplx-"}, list: alnumList, min: 32},
	{ /* replicate.com/docs */ prefixes: []string{"r8_"}, list: alnumList, min: 30},
	{ /* docs.fireworks.ai */ prefixes: []string{"fw_"}, list: alnumList, min: 20, max: 32, ok: random},
	{ /* docs.together.ai */ prefixes: []string{"tgp_v1_"}, list: dashedList, min: 32},
	{ /* docs.nvidia.com, NGC keys */ prefixes: []string{"nvapi-"}, list: dashedList, min: 40},
	{ /* cerebras.ai, API keys */ prefixes: []string{"csk-"}, list: "a-z0-9", min: 40},
	{ /* docs.voyageai.com; docs.pinecone.io */ prefixes: []string{"pa-", "pcsk_"}, list: dashedList, min: 40, ok: random},
	{ /* langfuse.com; docs.langchain.com */ prefixes: []string{"lsv2_pt_", "lsv2_sk_", "ls__"}, list: nameList, min: 30},
	{ /* docs.tavily.com; docs.firecrawl.dev; e2b.dev */ prefixes: []string{"tvly-", "fc-", "e2b_"}, list: dashedList, min: 30, ok: random},

	// Clouds.
	{ /* gitleaks aws-access-token; docs.aws.amazon.com, unique identifiers */ prefixes: []string{"AKIA", "ASIA", "ABIA", "ACCA"}, list: upnumList, min: 16, max: 16},
	{ /* docs.aws.amazon.com, Bedrock API keys */ prefixes: []string{"ABSKQmVkcm9ja0FQSUtleS", "bedrock-api-key-"}, list: looseList, min: 30, inside: true},
	{ /* developers.google.com, OAuth 2.0 */ prefixes: []string{"ya29."}, list: dottedList, min: 20, inside: true},
	{ /* developers.google.com, OAuth 2.0 client secrets */ prefixes: []string{"GOCSPX-"}, list: dashedList, min: 20, inside: true},
	{ /* GitHub, Google OAuth refresh token */ prefixes: []string{"1//0"}, list: dashedList, min: 36},
	{ /* cloud.google.com, HMAC keys */ prefixes: []string{"GOOG1E", "GOOG"}, list: upnumList, min: 20, max: 61, ok: func(s string) bool { return has(s, digitByte) }},
	{ /* gitleaks digitalocean-pat, -access-token, -refresh-token */ prefixes: []string{"dop_v1_", "doo_v1_", "dor_v1_", "dot_v1_"}, list: hexList, min: 32, inside: true},
	{ /* GitHub, DigitalOcean Spaces */ prefixes: []string{"DO00", "DO801"}, list: upnumList, min: 15, max: 16, ok: func(s string) bool { return has(s, upperByte) && count(s, digitByte) >= 2 }},
	{ /* gitleaks alibaba-access-key-id */ prefixes: []string{"LTAI"}, list: alnumList, min: 12, max: 26, ok: random},
	{ /* cloud.tencent.com, secret ids */ prefixes: []string{"AKID"}, list: alnumList, min: 28, max: 36, ok: random},
	{ /* gitleaks heroku-api-key-v2 */ prefixes: []string{"HRKU-"}, list: dashedList, min: 30},
	{ /* gitleaks flyio-access-token */ prefixes: []string{"fo1_", "fm1r_", "fm1a_", "fm2_"}, list: paddedList, min: 40},
	{ /* vercel.com, tokens */ prefixes: []string{"vcp_", "vci_", "vca_", "vcr_", "vck_"}, list: dashedList, min: 24, ok: random},
	{ /* docs.netlify.com */ prefixes: []string{"nfp_", "nfc_", "nfo_", "nfb_", "nfu_"}, list: alnumList, min: 30},
	{ /* gitleaks cloudflare-origin-ca-key */ prefixes: []string{"v1.0-"}, list: "a-f0-9-", min: 100},
	{ /* developers.cloudflare.com, token formats of 2026 */ prefixes: []string{"cfut_", "cfat_", "cfk_"}, list: dashedList, min: 30},
	{ /* supabase.com, API keys */ prefixes: []string{"sb_secret_", "sbp_"}, list: dashedList, min: 20, ok: random},
	{ /* gitleaks planetscale-* */ prefixes: []string{"pscale_tkn_", "pscale_pw_", "pscale_oauth_"}, list: dottedList, min: 24},
	{ /* neon.com, API keys */ prefixes: []string{"napi_"}, list: alnumList, min: 40},
	{ /* gitleaks databricks-api-token */ prefixes: []string{"dapi"}, list: hexList, min: 32},
	{ /* gitleaks clickhouse-cloud-api-secret-key */ prefixes: []string{"4b1d"}, list: alnumList, min: 38, max: 38, ok: func(s string) bool { return has(s, upperByte) }},
	{ /* tailscale.com, keys */ prefixes: []string{"tskey-"}, list: dashedList, min: 16, inside: true},
	{ /* GitHub, Scaleway */ prefixes: []string{"SCW"}, list: upnumList, min: 17, max: 17, ok: func(s string) bool { return has(s, digitByte) }},
	{ /* github.com/Azure, Cosmos, Storage and DevOps key signatures */ prefixes: []string{"AccountKey=", "SharedAccessKey="}, list: paddedList, min: 20, keep: true},

	// Secrets' own keepers, identity.
	{ /* gitleaks vault-service-token, vault-batch-token */ prefixes: []string{"hvs.", "hvb.", "hvr."}, list: dashedList, min: 24},
	{ /* gitleaks vault-service-token, old form */ prefixes: []string{"s."}, list: alnumList, min: 24, max: 24, ok: func(s string) bool { return has(s, upperByte) && has(s, lowerByte) && has(s, digitByte) }},
	{ /* gitleaks doppler-api-token */ prefixes: []string{"dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."}, list: dottedList, min: 30},
	{ /* gitleaks 1password-service-account-token */ prefixes: []string{"ops_eyJ"}, list: paddedList, min: 40, inside: true},
	{ /* gitleaks 1password-secret-key */ prefixes: []string{"A3-"}, list: "A-Z0-9-", min: 31, ok: func(s string) bool { return has(s, digitByte) }},
	{ /* gitleaks age-secret-key */ prefixes: []string{"AGE-SECRET-KEY-1", "AGE-SECRET-KEY-PQ-1"}, list: upnumList, min: 40, inside: true},
	{ /* gitleaks openshift-user-token */ prefixes: []string{"sha256~"}, list: dashedList, min: 40},
	{ /* infisical.com; GitHub */ prefixes: []string{"st.", "infisical_"}, list: dottedList, min: 40, ok: random},
	{ /* workos.com; clerk.com; GitHub */ prefixes: []string{"sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_prod_"}, list: alnumList, min: 10, inside: true},
	{ /* gitleaks authress-service-client-access-key */ prefixes: []string{"scauth_", "authress_"}, list: paddedList, min: 40},

	// Payment and trade.
	{ /* docs.stripe.com, webhooks; standardwebhooks.com */ prefixes: []string{"whsec_"}, list: paddedList, min: 16, inside: true},
	{ /* gitleaks square-access-token; developer.squareup.com */ prefixes: []string{"sq0atp-", "sq0csp-", "sq0idp-"}, list: dashedList, min: 20, inside: true},
	{ /* gitleaks square-access-token */ prefixes: []string{"EAAA"}, list: dashedList, min: 50, max: 64, ok: random},
	{ /* gitleaks shopify-* */ prefixes: []string{"shpat_", "shpca_", "shppa_", "shpss_", "shptka_"}, list: alnumList, min: 24, inside: true},
	{ /* gitleaks flutterwave-secret-key */ prefixes: []string{"FLWSECK-", "FLWSECK_TEST-"}, list: dashedList, min: 12, inside: true},
	{ /* developer.paypal.com; braintree */ prefixes: []string{"access_token$production$", "access_token$sandbox$"}, list: "a-z0-9$", min: 30, inside: true},
	{ /* razorpay.com, API keys */ prefixes: []string{"rzp_live_", "rzp_test_"}, list: alnumList, min: 10, inside: true},
	{ /* gitleaks plaid-api-token */ prefixes: []string{"access-sandbox-", "access-development-", "access-production-"}, list: "0-9a-f-", min: 30},
	{ /* gitleaks duffel-api-token */ prefixes: []string{"duffel_test_", "duffel_live_"}, list: paddedList, min: 24},
	{ /* gitleaks easypost-api-token */ prefixes: []string{"EZAK", "EZTK"}, list: alnumList, min: 50},
	{ /* gitleaks shippo-api-token */ prefixes: []string{"shippo_live_", "shippo_test_"}, list: hexList, min: 32},

	// Messages and mail.
	{ /* gitleaks slack-*; docs.slack.dev, token types */ prefixes: []string{"xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xoxz-", "xapp-", "xwfp-"}, list: "A-Za-z0-9.%+/=_-", min: 10, inside: true},
	{ /* gitleaks sendgrid-api-token */ prefixes: []string{"SG."}, list: dottedList, min: 30},
	{ /* gitleaks sendinblue-api-token */ prefixes: []string{"xkeysib-", "xsmtpsib-"}, list: dashedList, min: 40},
	{ /* gitleaks mailgun-private-api-token */ prefixes: []string{"key-"}, list: "a-f0-9", min: 32, max: 32},
	{ /* gitleaks mailchimp-api-key is by name; mandrillapp.com */ prefixes: []string{"md-"}, list: dashedList, min: 22, max: 22, ok: random},
	{ /* resend.com; postmark */ prefixes: []string{"re_"}, list: nameList, min: 24, ok: func(s string) bool { return has(s, upperByte) && has(s, digitByte) }},
	{ /* gitleaks twilio-api-key */ prefixes: []string{"SK"}, list: "0-9a-f", min: 32, max: 32},
	{ /* discord.com/developers, webhooks */ prefixes: []string{"discord.com/api/webhooks/", "discordapp.com/api/webhooks/"}, list: "A-Za-z0-9/_-", min: 30, inside: true, keep: true},
	{ /* gitleaks slack-webhook-url */ prefixes: []string{"hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"}, list: "A-Za-z0-9+/", min: 10, inside: true, keep: true},
	{ /* gitleaks microsoft-teams-webhook */ prefixes: []string{".webhook.office.com/webhookb2/"}, list: "A-Za-z0-9@/-", min: 36, inside: true, keep: true},
	{ /* zapier.com; make.com; ifttt.com, webhooks */ prefixes: []string{"hooks.zapier.com/hooks/catch/", "maker.ifttt.com/trigger/"}, list: "A-Za-z0-9_/-", min: 10, inside: true, keep: true},
	{ /* open.feishu.cn; larksuite.com, bot webhooks */ prefixes: []string{"/open-apis/bot/v2/hook/"}, list: "A-Za-z0-9-", min: 20, inside: true, keep: true},
	{ /* gitleaks facebook-page-access-token; developers.facebook.com */ prefixes: []string{"EAAC", "EAAM", "EAAG", "EAAB"}, list: alnumList, min: 60},
	{ /* gitleaks twitter-bearer-token */ prefixes: []string{"AAAAAAAAAAAAAAAAAAAAAA"}, list: "A-Za-z0-9%", min: 80, max: 110, ok: func(s string) bool { return has(s, lowerByte) && has(s, digitByte) }},
	{ /* docs.pushbullet.com; telnyx.com */ prefixes: []string{"KEY01"}, list: nameList, min: 30},

	// Tools of teams and operations.
	{ /* gitleaks notion-api-token */ prefixes: []string{"ntn_", "secret_"}, list: alnumList, min: 40},
	{ /* gitleaks linear-api-key */ prefixes: []string{"lin_api_", "lin_oauth_", "lin_wh_"}, list: alnumList, min: 24, inside: true},
	{ /* airtable.com, personal access tokens */ prefixes: []string{"pat"}, list: "A-Za-z0-9.", min: 70, ok: func(s string) bool { return len(s) > 14 && s[14] == '.' }},
	{ /* figma.com, personal access tokens */ prefixes: []string{"figd_", "figo_", "figoh_", "figor_"}, list: dashedList, min: 30},
	{ /* gitleaks postman-api-token */ prefixes: []string{"PMAK-", "PMAT-"}, list: dashedList, min: 24},
	{ /* gitleaks grafana-cloud-api-token, grafana-service-account-token */ prefixes: []string{"glc_eyJ", "glsa_"}, list: "A-Za-z0-9+/=_", min: 24, inside: true},
	{ /* gitleaks grafana-api-key */ prefixes: []string{"eyJrIjoi"}, list: "A-Za-z0-9=", min: 40},
	{ /* gitleaks dynatrace-api-token */ prefixes: []string{"dt0c01.", "dt0s01.", "dt0s02.", "dt0s03."}, list: "A-Z0-9.", min: 30, inside: true},
	{ /* gitleaks new-relic-* */ prefixes: []string{"NRAK-", "NRII-", "NRIQ-", "NRJS-", "NRRA-"}, list: dashedList, min: 16},
	{ /* gitleaks sentry-org-token, sentry-user-token */ prefixes: []string{"sntrys_", "sntryu_", "sntryi_"}, list: paddedList, min: 24},
	{ /* posthog.com, personal API keys */ prefixes: []string{"phx_", "phs_"}, list: alnumList, min: 30},
	{ /* gitleaks octopus-deploy-api-key */ prefixes: []string{"API-"}, list: upnumList, min: 25, max: 30, ok: func(s string) bool { return has(s, digitByte) }},
	{ /* gitleaks pulumi-api-token */ prefixes: []string{"pul-"}, list: hexList, min: 40, max: 40},
	{ /* gitleaks prefect-api-token */ prefixes: []string{"pnu_", "pnb_"}, list: alnumList, min: 30},
	{ /* gitleaks infracost-api-token */ prefixes: []string{"ico-"}, list: alnumList, min: 32, max: 32, ok: random},
	{ /* gitleaks frameio-api-token */ prefixes: []string{"fio-u-"}, list: paddedList, min: 30},
	{ /* gitleaks typeform-api-token */ prefixes: []string{"tfp_"}, list: dottedList, min: 40},
	{ /* gitleaks scalingo-api-token */ prefixes: []string{"tk-us-"}, list: dashedList, min: 40},
	{ /* gitleaks adobe-client-secret */ prefixes: []string{"p8e-", "p8-"}, list: alnumList, min: 32},
	{ /* gitleaks intra42-client-secret */ prefixes: []string{"s-s4t2ud-", "s-s4t2af-"}, list: hexList, min: 40},
	{ /* gitleaks mapbox-api-token, secret form; docs.mapbox.com */ prefixes: []string{"sk.eyJ"}, list: dottedList, min: 40},
	{ /* gitleaks launchdarkly is by name; docs.launchdarkly.com */ prefixes: []string{"sdk-", "api-"}, list: "0-9a-f-", min: 36, max: 36, ok: func(s string) bool { return strings.Count(s, "-") == 4 }},
	{ /* docs.contentful.com */ prefixes: []string{"CFPAT-"}, list: dashedList, min: 30},
	{ /* developers.asana.com */ prefixes: []string{"2/", "1/", "0/"}, list: "0-9/:a-f", min: 46, ok: func(s string) bool { return strings.Count(s, "/") >= 1 && strings.Contains(s, ":") }},
	{ /* developer.hashicorp.com, HCP and Consul */ prefixes: []string{"hcp."}, list: dashedList, min: 40},
	{ /* docs.temporal.io; docs.prisma.io */ prefixes: []string{"prisma_live_", "tmprl_"}, list: paddedList, min: 30},
	{ /* docs.lob.com */ prefixes: []string{"live_pub_", "test_pub_"}, list: "a-f0-9", min: 31},

	// What says itself that a credential follows.
	{ /* RFC 6750 */ prefixes: []string{"Bearer ", "bearer ", "BEARER "}, list: looseList, min: 8, ok: notWord, keep: true},
	{ /* RFC 7617 */ prefixes: []string{"Basic ", "basic ", "BASIC "}, list: paddedList, min: 8, ok: userAndPassword, keep: true},
	{ /* manuals of command line tools */ prefixes: []string{
		"--password ", "--passwd ", "--pass ", "--token ", "--secret ", "--api-key ", "--apikey ", "--access-token ", "--auth-token ", "--client-secret ", "--secret-key ", "--secret-access-key ", "--private-token ",
		"sshpass -p ", "redis-cli -a ",
	}, list: "A-Za-z0-9._~+/=!@#%^&*-", min: 6, ok: func(s string) bool { return s[0] != '-' && mixed(s) }, keep: true},
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
	sets := map[string]*bytes{}
	for i := range formats {
		f := &formats[i]
		if sets[f.list] == nil {
			sets[f.list] = setOf(f.list)
		}
		for _, p := range f.prefixes {
			all = append(all, rule{anchor: p, find: f.finder(len(p), sets[f.list])})
		}
	}
	return slices.Concat(all, blocks(), addresses(), named())
}

// finder returns the function of a rule whose anchor has a length, with the set of f.list.
func (f *format) finder(anchor int, set *bytes) func(string, int, bool) match {
	return func(s string, at int, whole bool) match {
		if !f.inside && !begins(s, at) {
			return match{}
		}
		from := at + anchor
		n := run(s[from:], set)
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
