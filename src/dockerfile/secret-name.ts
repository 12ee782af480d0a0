const secretWords =
  /(?:^|_)(?:apikey|auth|credential|credentials|key|password|pword|passwd|secret|token)(?:_|$)/i;
const harmlessWords = /(?:^|_)(?:public|file|version)(?:_|$)/i;

/** True if a variable's name means a secret, by the words of Docker's check SecretsUsedInArgOrEnv. */
export function isSecretName(name: string): boolean {
  return secretWords.test(name) && !harmlessWords.test(name);
}
