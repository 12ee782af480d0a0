/**
 * crun up to 1.8 has no `run --keep`: it removes a container's control groups before bough can read which limit the command ran
 * into. So bough makes the groups, and starts crun inside them with its own management of groups turned off.
 */
export interface Crun {
  kind: "crun";
  program: string;
  /** See `openSealedCopy`; `undefined`: there is none, and crun itself hides its program from each container. */
  copy: number | undefined;
  /**
   * The directory of its state in each sandbox's mount namespace: in memory, as the configuration is in it, and so the command's
   * secrets.
   */
  state: string;
  /**
   * The compiled system call filter, which crun loads as it is. If it is missing, crun compiles one, which takes 10 ms, a third of
   * a short RUN.
   */
  filter: string | undefined;
  /** True for a trial: the container is created, and its command is not started. */
  onlyCreates?: boolean;
}

/** The descriptor by which crun inherits its copy: other programs have 3 and 4. */
const copyDescriptor = 5;

/** Returns the program of a command line, for a process that has `crunDescriptors`. */
export function crunProgram({ program, copy }: Pick<Crun, "program" | "copy">): string {
  return copy === undefined ? program : `/proc/self/fd/${copyDescriptor}`;
}

/** Returns the descriptors, from 3 on, of a process that becomes crun. `others`: those that are not crun's. */
export function crunDescriptors(
  { copy }: Pick<Crun, "copy">,
  others: readonly (number | undefined)[],
): (number | undefined)[] {
  return [others[0], others[1], copy];
}

/**
 * Returns crun's environment variables. Without a copy, crun hides its own program from the container by a temporary file in the
 * directory named here. Its default is `/tmp`, where the file would stay if crun were killed.
 */
export function crunVariables({ copy, state }: Pick<Crun, "copy" | "state">): Record<string, string> {
  return copy === undefined ? { _LIBCONTAINER_STATEDIR: state } : {};
}
