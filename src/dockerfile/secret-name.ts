const secretWords =
  /(?:^|_)(?:apikey|auth|credential|credentials|key|password|pword|passwd|secret|token)(?:_|$)/i;
const harmlessWords = /(?:^|_)(?:public|file|version)(?:_|$)/i;

/** Returns whether a variable's name says that its value is a secret; the words are those of Docker's SecretsUsedInArgOrEnv. */
export function isSecretName(name: string): boolean {
  return secretWords.test(name) && !harmlessWords.test(name);
}
