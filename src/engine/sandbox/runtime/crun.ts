/**
 * crun up to 1.8 has no `run --keep`: it removes a container's control groups before anybody can read which limit the command ran
 * into. So bough makes the groups, and crun is started inside of them with its own management of groups turned off.
 */
export interface Crun {
  kind: "crun";
  program: string;
  /** See `openSealedCopy`; `undefined`: there is none, and crun hides its program from each container by itself. */
  copy: number | undefined;
  /**
   * Where its state is in each sandbox's mount namespace: in memory, as the configuration is in it, and so the command's secrets.
   */
  state: string;
  /** The filter of system calls, compiled: see `compiled-filter.ts`. crun compiles it itself where there is none. */
  filter: string | undefined;
}

/** What crun inherits its copy as: other programs have 3 and 4. */
const copyDescriptor = 5;

/** The program of a command line, for a process that has `crunDescriptors`. */
export function crunProgram({ program, copy }: Pick<Crun, "program" | "copy">): string {
  return copy === undefined ? program : `/proc/self/fd/${copyDescriptor}`;
}

/** What a process inherits that becomes crun, from 3 on. `others`: what it has beside crun's. */
export function crunDescriptors(
  { copy }: Pick<Crun, "copy">,
  others: readonly (number | undefined)[],
): (number | undefined)[] {
  return [others[0], others[1], copy];
}

/**
 * What crun is to find in its environment. Without a copy it hides its own program from the container by a file in the place that is
 * named here, which it removes again. In `/tmp`, which it takes otherwise, one would be left where crun is killed.
 */
export function crunVariables({ copy, state }: Pick<Crun, "copy" | "state">): Record<string, string> {
  return copy === undefined ? { _LIBCONTAINER_STATEDIR: state } : {};
}
