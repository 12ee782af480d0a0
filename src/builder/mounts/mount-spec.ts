import { posix } from "node:path";
import type { Mount } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";

/** A `RUN --mount` with BuildKit's defaults and with variables replaced. */
export type MountSpec = { /** Absolute, without `..` and a slash at the end. */ target: string } & (
  | ({ type: "bind" } & MountSource & { readonly: boolean })
  | ({
      type: "cache";
      id: string;
      sharing: "shared" | "private" | "locked";
      readonly: boolean;
    } & Partial<MountOwner> &
      MountSource)
  | { type: "tmpfs"; size: number | undefined }
  | ({
      type: "secret";
      id: string;
      required: boolean;
      /** False: the secret is only in the variable. */
      isFile: boolean;
      env: string | undefined;
    } & Partial<MountOwner>)
  | ({ type: "ssh"; id: string; required: boolean } & Partial<MountOwner>)
);

interface MountSource {
  /** A stage or image, as written; `undefined`: the build context, or no source for a cache. */
  from: string | undefined;
  /** Absolute, from the root of the context, stage or image. */
  source: string;
}

interface MountOwner {
  /** Octal. */
  mode: string;
  uid: number;
  gid: number;
}

/**
 * @param mounts of one RUN, variables replaced
 * @param workdir the base of relative targets
 * @returns the mounts, nested ones after those that contain them, whatever their order in the Dockerfile
 * @throws BoughError of kind `usage`, in BuildKit's words if it has any
 */
export function readMounts(mounts: readonly Mount[], workdir: string): MountSpec[] {
  let agents = 0;
  const specs = mounts.map((mount): MountSpec => {
    const spec = readMount(mount, workdir, agents);
    if (spec.type === "ssh") agents++;
    return spec;
  });
  return specs.sort((one, other) => (one.target < other.target ? -1 : one.target > other.target ? 1 : 0));
}

function readMount(mount: Mount, workdir: string, agents: number): MountSpec {
  refuseForeignKeys(mount);
  const target = (otherwise: string | undefined) => targetOf(mount.target, otherwise, workdir, mount);
  const source = posix.join("/", mount.source ?? "");
  const { from } = mount;
  switch (mount.type) {
    case "bind":
      return {
        type: "bind",
        target: target(undefined),
        from,
        source,
        readonly: flagOf(mount, "readonly", true),
      };
    case "cache": {
      const place = target(undefined);
      const id = mount.id || posix.join(mount.target || ".", ".").replace(/(.)\/$/, "$1");
      const readonly = flagOf(mount, "readonly", false);
      const sharing = sharingOf(mount);
      return { type: "cache", target: place, id, sharing, readonly, from, source, ...ownerOf(mount) };
    }
    case "tmpfs":
      return { type: "tmpfs", target: target(undefined), size: sizeOf(mount) };
    case "secret": {
      const id = mount.source || mount.id || posix.basename(mount.target ?? "");
      if (id === "") throw mountError(mount, "one of source, target required");
      const isFile = mount.env === undefined || mount.target !== undefined;
      const place = target(`/run/secrets/${posix.basename(id)}`);
      const required = flagOf(mount, "required", false);
      return { type: "secret", target: place, id, required, isFile, env: mount.env, ...ownerOf(mount) };
    }
    case "ssh": {
      if (mount.source !== undefined) throw mountError(mount, "ssh does not support source");
      const place = target(`/run/buildkit/ssh_agent.${agents}`);
      const required = flagOf(mount, "required", false);
      return { type: "ssh", target: place, id: mount.id || "default", required, ...ownerOf(mount) };
    }
    default:
      throw mountError(mount, `unsupported mount type ${JSON.stringify(mount.type)}`);
  }
}

/** BuildKit's build argument with a namespace for the ids of cache mounts. */
export const cacheNamespaceArgument = "BUILDKIT_CACHE_MOUNT_NS";

/** Returns the id under which a cache is stored, with its namespace. */
export function cacheIdOf(id: string, buildArgs: ReadonlyMap<string, string>): string {
  const namespace = buildArgs.get(cacheNamespaceArgument) ?? "";
  return namespace === "" ? id : `${namespace}/${id}`;
}

type Key = keyof Mount;

/** Throws for keys that BuildKit refuses for the mount's type. */
function refuseForeignKeys(mount: Mount): void {
  const { type } = mount;
  const only: readonly [Key, readonly string[]][] = [
    ["required", ["secret", "ssh"]],
    ["size", ["tmpfs"]],
    ["env", ["secret"]],
    ["sharing", ["cache"]],
    ["mode", ["secret", "ssh", "cache"]],
    ["uid", ["secret", "ssh", "cache"]],
    ["gid", ["secret", "ssh", "cache"]],
  ];
  for (const [key, types] of only) {
    if (mount[key] !== undefined && !types.includes(type))
      throw mountError(mount, `unexpected key '${key}': it is only for type ${types.join(", ")}`);
  }
  if (type !== "secret") return;
  if (mount.from !== undefined) throw mountError(mount, "secret mount should not have a from");
  if (mount.source !== undefined && mount.id !== undefined)
    throw mountError(mount, "both source and id can't be set");
}

function targetOf(
  given: string | undefined,
  otherwise: string | undefined,
  workdir: string,
  mount: Mount,
): string {
  const target = posix.resolve("/", workdir, given || otherwise || "");
  if (target === "/") throw mountError(mount, 'invalid mount target "/"');
  if (/[\0\n]/.test(target)) throw mountError(mount, `invalid mount target ${JSON.stringify(target)}`);
  return target;
}

function flagOf(mount: Mount, key: "readonly" | "required", otherwise: boolean): boolean {
  const value = mount[key];
  if (value === undefined || value === true) return value ?? otherwise;
  const flag = parseGoBoolean(value);
  if (flag !== undefined) return flag;
  throw mountError(mount, `invalid value for ${key}: ${value}`);
}

function sharingOf(mount: Mount): "shared" | "private" | "locked" {
  const value = (mount.sharing || "shared").toLowerCase();
  if (value === "shared" || value === "private" || value === "locked") return value;
  const problem = `unsupported sharing value ${JSON.stringify(value)}`;
  throw mountError(mount, problem, "Give one of shared, private, locked.");
}

function ownerOf(mount: Mount): Partial<MountOwner> {
  const number = (key: "uid" | "gid") => {
    const value = mount[key];
    if (value === undefined) return {};
    if (/^\d{1,10}$/.test(value) && Number(value) < 2 ** 32) return { [key]: Number(value) };
    throw mountError(mount, `invalid value ${value} for ${key}`);
  };
  const { mode } = mount;
  if (mode !== undefined && !/^0*[0-7]{1,4}$/.test(mode))
    throw mountError(mount, `invalid value ${mode} for mode`);
  const octal = mode === undefined ? {} : { mode: Number.parseInt(mode, 8).toString(8).padStart(4, "0") };
  return { ...octal, ...number("uid"), ...number("gid") };
}

const units: Readonly<Record<string, number>> = { "": 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

function sizeOf(mount: Mount): number | undefined {
  if (mount.size === undefined) return undefined;
  const [, digits = "", unit = ""] = /^(\d+(?:\.\d+)?) ?([kmgt]?)i?b?$/i.exec(mount.size) ?? [];
  const factor = units[unit.toLowerCase()];
  if (digits === "" || factor === undefined) throw mountError(mount, `invalid value for size: ${mount.size}`);
  return Math.floor(Number(digits) * factor);
}

function mountError({ type }: Mount, problem: string, hint?: string): BoughError {
  return new BoughError(`--mount=type=${type}: ${problem}`, { kind: "usage", hint });
}
