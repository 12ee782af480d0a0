import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { machineArchitecture } from "../../image/platform.ts";
import type { Helper } from "../../programs/helper.ts";
import { hostsFile, type ProvidedNetwork, type SandboxNetwork } from "../network/networks.ts";
import { layerDirectory } from "../records/layers.ts";
import { recordHelper } from "../system/helper-process.ts";
import { makeUpper } from "../system/owner-and-mode.ts";
import { mountableViews } from "../system/user-namespace.ts";
import { checkCommand, type RefusedCommand } from "./command-check.ts";
import { removeContainer } from "./containers.ts";
import { KillSwitch } from "./kill-switch.ts";
import { LimitGuard } from "./limits/guard.ts";
import type { LimitSettings } from "./limits/limits.ts";
import type { OwnGroups } from "./limits/own-groups.ts";
import { eventResources } from "./limits/usage.ts";
import { isInChroot } from "./root/chroot.ts";
import { enterMountNamespace, startNamespace } from "./root/mount-namespace.ts";
import { type MountPoints, provideMountPoints, removeMountPoints } from "./root/mount-points.ts";
import { resolveWorkingDirectory } from "./root/root-path.ts";
import { sandboxConfig } from "./sandbox-config.ts";
import type { SandboxMount } from "./sandbox-mounts.ts";
import { processConfig, type SandboxProcess } from "./sandbox-process.ts";
import type { LiveSandbox, SandboxHost, SandboxOutcome, SandboxRequest } from "./sandbox-request.ts";
import { supervise } from "./supervise.ts";

/**
 * Runs one command in a container on top of the image's layers. Afterwards `<directory>/upper` has what the command changed, and
 * nothing else. Rejects if the sandbox could not be set up.
 */
export async function runInSandbox(host: SandboxHost, request: SandboxRequest): Promise<SandboxOutcome> {
  const { layout, environment } = host;
  const { runtime } = request;
  const upper = join(request.directory, "upper");
  makeUpper(upper, layerDirectory(layout, request.layers[0]));
  mkdirSync(join(request.directory, "work"));
  await request.fill(upper);
  const guard = new LimitGuard(host, request);
  const kill = new KillSwitch(request.signal, request.onKill);
  const network = host.networks.provide(request.network);
  let helper: Helper | undefined;
  let hasEnded = false;
  try {
    const groups = runtime.prepare(host, request.id);
    helper = startNamespace(layout, environment, {
      forCommand: true,
      descriptor: network.joined?.namespaces,
      terminal: request.terminal,
      runtime,
      entries: groups?.entries,
    });
    recordHelper(request.directory, helper.pid);
    kill.arm(helper);
    const entering = enterMountNamespace(layout, environment, helper, {
      file: join(request.directory, "words"),
      layers: request.layers,
      operation: request.directory,
      inUserNamespace: host.inUserNamespace,
      mounts: [...runtime.mounts, ...request.mounts.inNamespace],
      clock: host.clock,
      command: [
        ...guard.niceness,
        ...runtime.start(layout, { ...request, bundle: bundleDirectory(request) }),
      ],
    });
    // The settings are prepared meanwhile, which takes as long as mounting.
    const [namespace, prepared] = await Promise.all([
      entering,
      prepareSettings(host, request, guard, groups, network),
    ]);
    await request.mounts.fillMemory(namespace.machine);
    const points = provideMountPoints(namespace.root, upper);
    const { mounts, locate, requireStable } = request.mounts.place(
      namespace.root,
      { ...points, upper },
      namespace.machine,
    );
    const process = request.process(namespace.root);
    const cwd = resolveWorkingDirectory(namespace.root, process.cwd, locate);
    requireStable(cwd);
    const placed = { ...process, cwd };
    const bundle = join(namespace.machine, bundleDirectory(request));
    const configure = writeBundle(host, request, placed, bundle, {
      ...prepared,
      ...{ points, mounts, helper: helper.pid },
    });
    const { id, directory } = request;
    const started = (pid: number) => {
      // The runtime has read the configuration, which must not be left on the disk if this process is killed. In memory it ends with the command.
      const configurations = bundleDirectory(request);
      if (configurations === directory) rmSync(join(directory, bundleConfig), { force: true });
      request.onStart({
        id,
        directory,
        configurations,
        pid,
        process: placed,
        configure,
        locate,
        runtime,
        guard,
      });
    };
    const refused = runtime.onlyCreates ? undefined : checkCommand({ root: namespace.root, locate }, placed);
    const outcome = await (refused === undefined
      ? supervise(host, request, { namespace, kill, guard }, started)
      : refuse(request, namespace.process, refused, started)
    ).finally(request.onEnd);
    hasEnded = true;
    removeMountPoints(upper, points);
    return outcome;
  } finally {
    kill.disarm();
    helper?.discard?.();
    await removeContainer(host, request.id).catch((error: unknown) => {
      // Groups that bough has made stay on record until they can be removed.
      if (request.runtime.makesGroups) throw error;
    });
    network.release({ isEmpty: hasEnded });
  }
}

/** Ends a sandbox whose command can't be started. */
async function refuse(
  { onOutput }: SandboxRequest,
  helper: Helper,
  { exitCode, message }: RefusedCommand,
  onStart: (pid: number) => void,
): Promise<SandboxOutcome> {
  onStart(helper.pid);
  await helper.stdin.end();
  await helper.exited;
  await onOutput("stderr", Buffer.from(`${message}\n`));
  const resources = eventResources(helper.resourceUsage());
  return { pid: helper.pid, exitCode, timedOut: false, elapsedSeconds: 0, limitsHit: [], resources };
}

/** The OCI runtime specification prescribes this name. */
const bundleConfig = "config.json";

/**
 * Returns the directory of the runtime's configuration: in memory if the runtime has some, and for a request with data that must not be
 * on a disk.
 */
function bundleDirectory({ mounts, directory, runtime }: SandboxRequest): string {
  return mounts.memory ?? runtime.memory ?? directory;
}

/** The parts of a sandbox's configuration that do not depend on the image. */
interface Settings {
  network: SandboxNetwork;
  limits: LimitSettings;
  groups: Readonly<Record<string, string>>;
  /** Files of this machine that are mounted into the sandbox. */
  resolvConf: string;
  hosts: string;
  isInChroot: boolean;
}

async function prepareSettings(
  host: SandboxHost,
  request: SandboxRequest,
  guard: LimitGuard,
  groups: OwnGroups | undefined,
  { ready }: ProvidedNetwork,
): Promise<Settings> {
  if (groups !== undefined) guard.adopt(groups);
  const limits = guard.settings;
  // In the sandbox, users other than root read these files.
  const shared = (name: string, content: string) => writeFile(join(request.directory, name), content, 0o644);
  const network = await ready;
  const hosts = shared("hosts", hostsFile(request.hostname, request.extraHosts, network));
  const resolvConf = shared("resolv.conf", network.resolvConf);
  return {
    ...{ network, limits, groups: guard.groupViews, resolvConf, hosts },
    isInChroot: await isInChroot(host),
  };
}

/** Writes the command's configuration. Returns a function that configures other processes of the same sandbox. */
function writeBundle(
  host: SandboxHost,
  request: SandboxRequest,
  process: SandboxProcess,
  bundle: string,
  {
    points,
    resolvConf,
    hosts,
    ...settings
  }: Settings & { points: MountPoints; mounts: readonly SandboxMount[]; helper: number },
): LiveSandbox["configure"] {
  const options = {
    ...settings,
    root: host.layout.root,
    hostname: request.hostname,
    hasReadonlyFiles: request.hasReadonlyNetworkFiles,
    files: [
      { source: resolvConf, destination: points.resolvConf },
      { source: hosts, destination: points.hosts },
    ],
    inUserNamespace: host.inUserNamespace,
    views: mountableViews(),
    shmBytes: request.limits.shmBytes,
    architecture: machineArchitecture(),
    runtime: request.runtime,
  };
  // The configuration contains the command's environment, and so its secrets.
  writeFile(join(bundle, bundleConfig), JSON.stringify(sandboxConfig({ ...options, process })), 0o600);
  return (other) => processConfig({ ...options, process: other });
}

/** Writes a file and returns its path. */
function writeFile(path: string, content: string, mode: number): string {
  writeFileSync(path, content, { mode });
  // The mode must not depend on this process's umask.
  chmodSync(path, mode);
  return path;
}
