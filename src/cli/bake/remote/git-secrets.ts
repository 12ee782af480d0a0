/** Returns the ids of git's secrets that are set, each with the environment variable that has its value. */
export function gitSecrets(environment: Readonly<Record<string, string | undefined>>): [string, string][] {
  return ["GIT_AUTH_TOKEN", "GIT_AUTH_HEADER"].flatMap((id): [string, string][] => {
    const name = `BUILDX_BAKE_${id}`;
    return environment[name] === undefined ? [] : [[id, name]];
  });
}
