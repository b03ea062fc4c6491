// Decisions that are findings and no settings: they are shown as sentences. As importer/document/document_keys.py has them.

export const REMARKS = ["code", "prompts", "request_coverage", "template_variables", "token_numbers", "begin_token", "weights", "sisters"];
