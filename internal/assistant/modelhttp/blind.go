package modelhttp

import "remote-agent/internal/pattern"

// refusals are the ways in which servers say, in lower case, that a model does not
// take pictures or documents: OpenAI and Mistral, OpenRouter, vLLM, llama.cpp, Ollama,
// and those that know texts only.
var refusals = pattern.Lazy(`(?:image|vision|pdf|document|file).{0,60}(?:not (?:supported|enabled|allowed|available)|only supported|unsupported)` +
	`|(?:not|n't|no endpoints found that) support.{0,40}(?:image|vision|pdf|document|file|multimodal)` +
	`|not a multimodal|mmproj|at most 0 image|missing data required for image` +
	`|unknown variant .?(?:image_url|file)|content must be a string|invalid content type|unsupported content (?:part )?type`)

// RefusesFiles reports whether the text of an error, in lower case, says that the
// model does not take pictures or documents.
func RefusesFiles(text string) bool { return refusals.MatchString(text) }

// unreadable are the ways in which servers say, in lower case, that they do not take one of
// the pictures or documents, or not so many: Anthropic, OpenAI, Gemini, vLLM and llama.cpp.
var unreadable = pattern.Lazy(`could not process (?:image|pdf|document)|the pdf specified|maximum of \d+ pdf pages` +
	`|image exceeds|image dimensions exceed|image does not match|the image was specified using` +
	`|unable to process input image|document has no pages|cannot identify image|failed to load image` +
	`|(?:unsupported|invalid) image(?: data| format|[.,:;]|$)|(?:not|n't) represent a valid image|image is not valid|image_parse_error` +
	`|(?:could not|failed to|unable to) (?:parse|read|open) (?:the |your )?(?:pdf|document)`)

// RefusesAFile reports whether the text of an error, in lower case, says that one of the
// pictures or documents cannot be read, or that there are too many.
func RefusesAFile(text string) bool { return unreadable.MatchString(text) }
