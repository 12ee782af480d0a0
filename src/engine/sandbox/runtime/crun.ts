/**
 * crun up to 1.8 has no `run --keep`: it removes a container's control groups before anybody can read which limit the command ran
 * into. So bough makes the groups, and crun is started inside of them with its own management of groups turned off.
 */
export interface Crun {
  kind: "crun";
  program: string;
  /**
   * Where its state is in each sandbox's mount namespace: in memory, as the configuration is in it, and so the command's secrets.
   */
  state: string;
  /** The filter of system calls, compiled: see `compiled-filter.ts`. crun compiles it itself where there is none. */
  filter: string | undefined;
}

/**
 * What crun is to find in its environment: where it hides its own program from the container, by a file that it removes again. In
 * `/tmp`, which it takes otherwise, one would be left where crun is killed.
 */
export function crunVariables({ state }: Pick<Crun, "state">): Record<string, string> {
  return { _LIBCONTAINER_STATEDIR: state };
}
