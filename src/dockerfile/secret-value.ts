/** True if a value looks like a secret, whatever its name: a private key, or a token of a known form. */
export function isSecretValue(value: string): boolean {
  return forms.some((form) => form.test(value));
}

const forms: readonly RegExp[] = [
  /-----BEGIN [A-Z ]*PRIVATE KEY/,
  // A JSON Web Token: two of its parts are JSON objects.
  /\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\./,
  // GitHub's, GitLab's, Slack's, npm's, PyPI's, and keys of AWS and Google.
  /\b(gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|npm_|pypi-)[\w-]{16,}/,
  /\b(AKIA|ASIA)[A-Z0-9]{16}\b/,
  /\bAIza[\w-]{35}/,
];
