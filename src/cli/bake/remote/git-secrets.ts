/** Returns the ids of the secrets that git takes, each with the variable of the environment that has its value, of those that are set. */
export function gitSecrets(environment: Readonly<Record<string, string | undefined>>): [string, string][] {
  return ["GIT_AUTH_TOKEN", "GIT_AUTH_HEADER"].flatMap((id): [string, string][] => {
    const name = `BUILDX_BAKE_${id}`;
    return environment[name] === undefined ? [] : [[id, name]];
  });
}
