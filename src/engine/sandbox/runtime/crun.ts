import { closeSync } from "node:fs";
import { join } from "node:path";
import { type SpawnSettings, startPipedHelper } from "../../../programs/helper.ts";
import type { Layout } from "../../layout.ts";
import { recordContainer } from "../containers.ts";
import { ownHierarchies } from "../limits/controllers.ts";
import { makeGroups } from "../limits/own-groups.ts";
import { openDevices } from "../sandbox-config.ts";
import { invertedFilter } from "../seccomp.ts";
import { type ContainerRuntime, logArguments } from "./runtime.ts";

/** This machine's crun, and how it is started. */
export interface CrunSettings {
  program: string;
  /** The descriptor of a sealed copy; see `openSealedCopy`. `undefined` if there is none: then crun itself hides its program from each container. */
  copy: number | undefined;
  /**
   * The directory of its state in each sandbox's mount namespace. It is in memory, since it contains the configuration, and so the
   * command's secrets.
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

/** The descriptor by which crun inherits its copy. Descriptors 3 and 4 are for other programs. */
const copyDescriptor = 5;

/** A filter for crun beside a compiled one, since it requires one. If crun applied it, no command could do anything. */
const refuseAll = { defaultAction: "SCMP_ACT_ERRNO" };

/**
 * crun up to 1.8 has no `run --keep`: it removes a container's control groups before bough can read which limit the command ran
 * into. So bough makes the groups, and starts crun inside them with its own management of groups turned off.
 */
export class Crun implements ContainerRuntime {
  readonly name = "crun";
  readonly makesGroups = false;
  readonly #settings: CrunSettings;

  constructor(settings: CrunSettings) {
    this.#settings = settings;
  }

  get onlyCreates() {
    return this.#settings.onlyCreates === true;
  }

  get memory() {
    return this.#settings.state;
  }

  get mounts() {
    return [{ type: "tmpfs", options: "mode=0700,size=64m", place: this.#settings.state } as const];
  }

  prepare({ layout, inUserNamespace }: { layout: Layout; inUserNamespace: boolean }, id: string) {
    return makeGroups(id, ownHierarchies(), inUserNamespace ? undefined : openDevices, (directories) =>
      recordContainer(layout, id, directories),
    );
  }

  start(_: Layout, { id, directory, bundle }: { id: string; directory: string; bundle: string }): string[] {
    const verb = this.onlyCreates ? "create" : "run";
    const files = ["--bundle", bundle, "--pid-file", join(directory, "pid")];
    return [...this.#program(join(directory, "log")), verb, ...files, id];
  }

  exec(_: Layout, { id, log, process, pid }: Parameters<ContainerRuntime["exec"]>[1]): string[] {
    return [...this.#program(log), "exec", "--process", process, "--pid-file", pid, id];
  }

  /**
   * Starts crun, which passes its standard streams on to the command: pipes that the command can open by name. Without a copy, crun hides its own program
   * from the container by a temporary file in the directory of a variable. Its default is `/tmp`, where the file would stay if crun
   * were killed.
   */
  launch(command: readonly string[], { descriptors = [], environment, ...place }: SpawnSettings) {
    const { copy, state } = this.#settings;
    return startPipedHelper(command, {
      ...place,
      environment: { ...environment, ...(copy === undefined ? { _LIBCONTAINER_STATEDIR: state } : {}) },
      descriptors: [descriptors[0], descriptors[1], copy],
    });
  }

  filter(architecture: string, capabilities: readonly string[]) {
    const { filter } = this.#settings;
    return filter === undefined
      ? { seccomp: invertedFilter(architecture, capabilities) }
      : { seccomp: refuseAll, annotations: { "run.oci.seccomp_bpf_data": filter } };
  }

  likelyProblem(): undefined {}

  /** Call it when all its processes have ended. */
  close(): void {
    if (this.#settings.copy !== undefined) closeSync(this.#settings.copy);
  }

  #program(log: string): string[] {
    const { program, copy, state } = this.#settings;
    const path = copy === undefined ? program : `/proc/self/fd/${copyDescriptor}`;
    return [path, "--root", state, "--cgroup-manager", "disabled", ...logArguments(log)];
  }
}
